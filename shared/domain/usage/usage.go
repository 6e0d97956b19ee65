// Package usage counts the usage of accounts by day and model: requests, tokens and seconds of
// realtime sessions (docs/contract/gateway.md#metering). It imports neither HTTP nor a database.
package usage

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"cutroom/shared/domain/fault"
)

type Counts struct {
	// Requests counts completions. A realtime session is counted with its first record.
	Requests int64
	// PromptTokens includes CachedTokens, which were in the upstream's cache.
	PromptTokens, CachedTokens int64
	// CompletionTokens includes ReasoningTokens.
	CompletionTokens, ReasoningTokens int64
	// Estimated counts requests whose tokens the gateway estimated.
	Estimated      int64
	SessionSeconds int64
	// AudioSeconds counts transcribed audio, and Characters counts the text of speech.
	AudioSeconds, Characters int64
	Jobs, JobsCompleted      int64
	// Cost is in billionths of the catalog's currency (docs/contract/gateway.md#costs).
	Cost int64
	// BatchRequests and BatchCost are the parts of Requests and Cost that are due to batches.
	BatchRequests, BatchCost int64
}

// Count is one of the counts, with the name of its column or attribute.
type Count struct {
	Name  string
	Value *int64
}

// All returns pointers to all counts.
func (c *Counts) All() [14]Count {
	return [14]Count{
		{"requests", &c.Requests}, {"prompt_tokens", &c.PromptTokens}, {"cached_tokens", &c.CachedTokens},
		{"completion_tokens", &c.CompletionTokens}, {"reasoning_tokens", &c.ReasoningTokens},
		{"estimated", &c.Estimated}, {"session_seconds", &c.SessionSeconds}, {"jobs", &c.Jobs},
		{"jobs_completed", &c.JobsCompleted}, {"cost", &c.Cost}, {"batch_requests", &c.BatchRequests},
		{"batch_cost", &c.BatchCost}, {"audio_seconds", &c.AudioSeconds}, {"characters", &c.Characters},
	}
}

func (c *Counts) Add(more Counts) {
	c.Requests += more.Requests
	c.PromptTokens += more.PromptTokens
	c.CachedTokens += more.CachedTokens
	c.CompletionTokens += more.CompletionTokens
	c.ReasoningTokens += more.ReasoningTokens
	c.Estimated += more.Estimated
	c.SessionSeconds += more.SessionSeconds
	c.AudioSeconds += more.AudioSeconds
	c.Characters += more.Characters
	c.Jobs += more.Jobs
	c.JobsCompleted += more.JobsCompleted
	c.BatchRequests += more.BatchRequests
	c.Cost, c.BatchCost = min(c.Cost+more.Cost, MaxCost), min(c.BatchCost+more.BatchCost, MaxCost)
}

// MaxCost limits the cost in one Counts, so that sums do not overflow. It is a billion units of the currency, in
// billionths.
const MaxCost = 1e18

// Amount formats billionths as a decimal number such as 0.00012.
func Amount(billionths int64) string {
	var buffer [32]byte
	text := strconv.AppendInt(buffer[:0], billionths/1e9, 10)
	point := len(text)
	text = strconv.AppendInt(text, 1e9+billionths%1e9, 10)
	text[point] = '.' // replaces the 1 of 1e9
	return string(bytes.TrimRight(bytes.TrimRight(text, "0"), "."))
}

// Day is a UTC day in the format 2006-01-02.
type Day string

// lastDay is the last result of DayOf, because formatting takes longer than the rest of a record.
var lastDay atomic.Pointer[dayNumber]

// dayNumber is a day with its number since 1970-01-01.
type dayNumber struct {
	number int64
	day    Day
}

func DayOf(t time.Time) Day {
	number := t.Unix() / secondsPerDay
	if last := lastDay.Load(); last != nil && last.number == number && number > 0 {
		return last.day
	}
	day := Day(t.UTC().Format(time.DateOnly))
	lastDay.Store(&dayNumber{number, day})
	return day
}

const secondsPerDay = 24 * 60 * 60

type Record struct {
	// If a record with the same ID is added twice, it counts once.
	ID      string
	Account string
	Key     string // the id of a permanent key, and possibly a label (see KeyOf)
	// Model is the id of a media model, or the slug of an inference model.
	Model string
	Day   Day
	Counts
}

// KeyOf combines the id of a permanent key with the label of a client token, which may be empty.
func KeyOf(id, label string) string {
	if label == "" {
		return id
	}
	return id + labelMark + label
}

const labelMark = "?"

type Columns uint8

const (
	ByDay Columns = 1 << iota
	ByModel
	ByKey
	ByLabel
	All = ByDay | ByModel | ByKey
)

const MaxTotals = 10_000

// Sums maps groups to their usage. The Counts inside its keys are empty.
type Sums map[Total]Counts

// Add adds the usage of one model with one key on one day to its group.
//
// Errors: fault.Invalid if there are more than MaxTotals groups.
func (s Sums) Add(t Total, by Columns) error {
	var group Total
	if by&ByDay != 0 {
		group.Day = t.Day
	}
	if by&ByModel != 0 {
		group.Model = t.Model
	}
	id, label, _ := strings.Cut(t.Key, labelMark)
	if by&ByKey != 0 {
		group.Key = id
	}
	if by&ByLabel != 0 {
		group.Label = label
	}
	sum := s[group]
	sum.Add(t.Counts)
	s[group] = sum
	if len(s) > MaxTotals {
		return fault.New(fault.Invalid,
			"The usage has more than %d rows. Narrow \"from\" and \"to\", or group by fewer fields in \"group_by\".", MaxTotals)
	}
	return nil
}

// Totals omits groups without usage and sorts by day, model and key.
func (s Sums) Totals() (totals []Total) {
	for group, sum := range s {
		if group.Counts = sum; sum != (Counts{}) { // sums are zero if the jobs were withdrawn
			totals = append(totals, group)
		}
	}
	slices.SortFunc(totals, func(a, b Total) int {
		return cmp.Or(cmp.Compare(a.Day, b.Day), cmp.Compare(a.Model, b.Model), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Label, b.Label))
	})
	return totals
}

// Total is the usage of one model with one key on one day. With fewer Columns, it covers several models, keys or
// days.
type Total struct {
	Day   Day
	Model string
	// Key is empty for old records.
	Key, Label string
	Counts
}

type Store interface {
	// Once Add succeeds, all records survive a crash. After an error, any of them may have been
	// added. A record that is added again within ten minutes counts only once.
	Add(ctx context.Context, records []Record) error
	// Totals returns an account's usage from the first to the last day, grouped by the given
	// columns and sorted by day, model and key. It reflects every Add that has returned.
	//
	// Errors: fault.Invalid if there are more than MaxTotals.
	Totals(ctx context.Context, account string, first, last Day, by Columns) ([]Total, error)
}
