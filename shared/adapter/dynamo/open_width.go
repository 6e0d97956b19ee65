package dynamo

import (
	"context"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"cutroom/shared/domain/job"
)

// An account without a limit has one set of open jobs while it has few, which is what the
// account of a small deploy has, and costs as much. With narrowRoom open jobs it becomes wide:
// it has wideSets from then on, as an account with a limit of maxOpen has. The first set says
// until when. That is put off while the account has many, by whoever counts them, and the jobs
// that are in the others then are counted until they have ended. There is no limit that the
// sets would have to share out exactly, so a process that does not know that an account is
// wide only adds to the first set, until that is full, and one of an earlier version counts
// fewer jobs than there are, until no such process runs any more.

const (
	// narrowRoom is how many ids the one set of an account without a limit has at most: it is
	// then compared with the records by one read.
	narrowRoom = itemsAtOnce
	// wideSets is how many sets a wide account has.
	wideSets = maxOpen / setRoom
	// wideFor is how long an account is wide after it had at least stayWideFrom open jobs.
	wideFor, stayWideFrom = time.Hour, narrowRoom / 2
	// largeFrom is how many open jobs an account without a limit has for which the index is
	// spread: half of what a limit allows for which it is.
	largeFrom = spreadSets * setRoom / 3
	// wideAttribute is the attribute of the first set with the time until which its account is
	// wide.
	wideAttribute = "wide_until"
	// mostWidths bounds how many accounts a process remembers.
	mostWidths = 20_000
)

// widths remembers the accounts without a limit that are wide, and what limits others have.
type widths struct {
	// large is largeFrom.
	large int

	mu    sync.Mutex
	known map[string]width
}

// width is what is known of an account: until when it is wide, whether it was seen to have
// largeFrom open jobs since, and the limits that its first set tells (tellLimit).
type width struct {
	until  time.Time
	large  bool
	limits map[int]time.Time
	// told is when that was last read for an estimate.
	told time.Time
}

func (w *widths) of(account string) width {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.known[account]
}

func (w *widths) note(account string, until time.Time, large bool) {
	w.change(account, func(known *width) {
		if until.After(known.until) { // it may have been learned meanwhile
			known.until = until
		}
		known.large = known.large || large
	})
}

func (w *widths) change(account string, how func(*width)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.known == nil || len(w.known) >= mostWidths {
		w.known = map[string]width{}
	}
	known := w.known[account]
	how(&known)
	w.known[account] = known
}

// limitOf returns the limit that holds for an account whose tier says so, as far as this
// process knows it.
func (s *Jobs) limitOf(account string, limit int) openLimit {
	if limit > 0 {
		return openLimitOf(limit)
	}
	if known := s.widths.of(account); s.now().Before(known.until) {
		return wideLimit(known.large)
	}
	return openLimitOf(0)
}

func wideLimit(large bool) openLimit {
	return openLimit{jobs: maxOpen, sets: wideSets, none: true, quiet: !large}
}

// outlived reports whether a wide account has, or may still have, jobs in its other sets, as far
// as this process knows.
func (s *Jobs) outlived(account string) bool {
	return s.now().Before(s.widths.of(account).until.Add(outlives))
}

// findWidth is findRoom for an account without a limit whose first set is full.
func (s *Jobs) findWidth(ctx context.Context, j job.Job, limit openLimit, sets []openSet) (spot, openLimit, error) {
	if !s.now().Before(sets[0].wide) {
		first, err := s.freeEnded(ctx, j.Account, sets[:1])
		if err != nil {
			return spot{}, limit, err
		}
		if len(first[0].elements) < stayWideFrom {
			return limit.spot(j.ID), limit, nil
		}
		if err := s.widen(ctx, j.Account); err != nil {
			return spot{}, limit, err
		}
	}
	limit = s.limitOf(j.Account, 0)
	return limit.spot(j.ID), limit, nil
}

// widen makes an account without a limit wide from now on for wideFor. A later end stays: others
// add to its sets until then, and a clock that is behind may not hide what they add.
func (s *Jobs) widen(ctx context.Context, account string) error {
	until := s.now().Add(wideFor)
	_, err := s.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &s.table, Key: openKey(account, 0),
		UpdateExpression: aws.String("SET #wide_until = :until"),
		ConditionExpression: aws.String("attribute_exists(#ttl) AND " +
			"(attribute_not_exists(#wide_until) OR #wide_until < :until)"),
		ExpressionAttributeNames:            named(wideAttribute, ttlAttribute),
		ExpressionAttributeValues:           item{":until": moment(until)},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if old, failed := conditionFailed(err); failed {
		// Without an item the set was empty for a day: there is room in it.
		first, err := readOpenSet(old)
		if err == nil {
			s.learn(account, first)
		}
		return err
	}
	if err == nil {
		s.widths.note(account, until, false)
	}
	return err
}

// stayWide puts off the end of an account's being wide, if it has so many open jobs that it
// should be.
func (s *Jobs) stayWide(ctx context.Context, account string, limit openLimit, open int) {
	if !limit.none || limit.narrow() || open < stayWideFrom {
		return
	}
	known := s.widths.of(account)
	if open >= s.widths.large && !known.large {
		s.widths.note(account, known.until, true)
	}
	if known.until.Sub(s.now()) < wideFor/2 {
		_ = s.widen(ctx, account) // the next one tries again, or the first set gets full
	}
}
