package gateway

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/usage"
	"cutroom/shared/service/gateway/apierror"
)

const (
	usageDays     = 30
	maxUsageDays  = 366
	defaultGroups = "day,model"
)

// usageBody is a row of an account's usage (docs/contract/gateway.md#usage).
type usageBody struct {
	Account          string    `json:"account,omitempty"`
	Day              usage.Day `json:"day,omitempty"`
	Model            string    `json:"model,omitempty"`
	Key              string    `json:"key,omitempty"`
	Label            string    `json:"label,omitempty"`
	Requests         int64     `json:"requests"`
	PromptTokens     int64     `json:"prompt_tokens"`
	CompletionTokens int64     `json:"completion_tokens"`
	CachedTokens     int64     `json:"cached_tokens"`
	ReasoningTokens  int64     `json:"reasoning_tokens"`
	Estimated        int64     `json:"estimated"`
	// SessionSeconds is set only for models with realtime sessions. Jobs is set only for models with jobs.
	SessionSeconds int64 `json:"session_seconds,omitempty"`
	AudioSeconds   int64 `json:"audio_seconds,omitempty"`
	Characters     int64 `json:"characters,omitempty"`
	Jobs           int64 `json:"jobs,omitempty"`
	// JobsCompleted also counts jobs that were accepted before this period.
	JobsCompleted int64 `json:"jobs_completed,omitempty"`
	// Cost and Currency are set only if the model has a price.
	Cost     json.Number `json:"cost,omitempty"`
	Currency string      `json:"currency,omitempty"`
	// BatchRequests and BatchCost are included in Requests and Cost. They are omitted if 0.
	BatchRequests int64       `json:"batch_requests,omitempty"`
	BatchCost     json.Number `json:"batch_cost,omitempty"`
}

type usageQuery struct {
	from, to usage.Day
	groups   []string
	csv      bool
	account  string
}

func groupNames() []string { return []string{"day", "model", "key", "label", "account"} }

// getUsage serves GET /v1/usage?from=&to=&group_by=&format=. from and to are days in UTC, and both are included.
func (g *Gateway) getUsage(w http.ResponseWriter, r *http.Request, who credential.Principal) error {
	query, err := g.usageQuery(r.URL.Query())
	if err != nil {
		return err
	}
	query.account = who.Account()
	var totals []usage.Total
	err = g.slowReads.Slowly(r.Context(), who.Account(), 2, func() (err error) { // labels make many rows
		totals, err = g.config.Usage.Totals(r.Context(), who.Account(), query.from, query.to, query.columns())
		return err
	})
	if err != nil {
		return err
	}
	rows := query.rows(totals, g.config.Catalog().Currency)
	if query.csv {
		return query.writeCSV(w, rows)
	}
	return respond(w, struct {
		Data []usageBody `json:"data"`
	}{rows})
}

func (g *Gateway) usageQuery(asked url.Values) (query usageQuery, err error) {
	to, err := parseDay(asked.Get("to"), "to", g.config.Date().UTC())
	if err != nil {
		return query, err
	}
	from, err := parseDay(asked.Get("from"), "from", to.AddDate(0, 0, 1-usageDays))
	if err != nil {
		return query, err
	}
	if from.After(to) || to.Sub(from) >= maxUsageDays*24*time.Hour {
		return query, wrongQuery("from", "\"from\" must not be after \"to\" and must be at most a year before it.")
	}
	query.from, query.to = usage.DayOf(from), usage.DayOf(to)
	query.groups = strings.Split(cmp.Or(asked.Get("group_by"), defaultGroups), ",")
	for i, group := range query.groups {
		if !slices.Contains(groupNames(), group) || slices.Contains(query.groups[:i], group) {
			return query, wrongQuery("group_by", "\"group_by\" must be a comma-separated list of day, model, key, label and account.")
		}
	}
	switch asked.Get("format") {
	case "", "json":
	case "csv":
		query.csv = true
	default:
		return query, wrongQuery("format", "\"format\" must be json or csv.")
	}
	return query, nil
}

func wrongQuery(param, message string) error {
	return &apierror.Error{
		Status: http.StatusBadRequest, Type: apierror.InvalidRequest, Param: param, Message: message,
	}
}

func (q usageQuery) rows(totals []usage.Total, currency string) []usageBody {
	rows := make([]usageBody, 0, len(totals))
	for _, sum := range totals {
		row := usageBody{
			Day: sum.Day, Model: sum.Model, Key: sum.Key, Label: sum.Label, Requests: sum.Requests,
			PromptTokens: sum.PromptTokens, CompletionTokens: sum.CompletionTokens,
			CachedTokens: sum.CachedTokens, ReasoningTokens: sum.ReasoningTokens,
			Estimated: sum.Estimated, SessionSeconds: sum.SessionSeconds, Jobs: sum.Jobs,
			JobsCompleted: sum.JobsCompleted, BatchRequests: sum.BatchRequests,
			AudioSeconds: sum.AudioSeconds, Characters: sum.Characters,
		}
		if slices.Contains(q.groups, "account") {
			row.Account = q.account
		}
		if sum.Cost > 0 {
			row.Cost, row.Currency = json.Number(usage.Amount(sum.Cost)), currency
		}
		if sum.BatchCost > 0 {
			row.BatchCost = json.Number(usage.Amount(sum.BatchCost))
		}
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b usageBody) int {
		order := 0
		for _, group := range q.groups {
			order = cmp.Or(order, cmp.Compare(a.column(group), b.column(group)))
		}
		return order
	})
	return rows
}

func (q usageQuery) columns() (by usage.Columns) {
	for _, group := range q.groups {
		by |= map[string]usage.Columns{"day": usage.ByDay, "model": usage.ByModel, "key": usage.ByKey, "label": usage.ByLabel}[group]
	}
	return by
}

func (b usageBody) column(group string) string {
	switch group {
	case "day":
		return string(b.Day)
	case "model":
		return b.Model
	case "account":
		return b.Account
	case "label":
		return b.Label
	}
	return b.Key
}

// writeCSV responds with CSV (RFC 4180). The first row contains the column names.
func (q usageQuery) writeCSV(w http.ResponseWriter, rows []usageBody) error {
	header := w.Header()
	header.Set("Content-Type", "text/csv; charset=utf-8; header=present")
	header.Set("Content-Disposition", `attachment; filename="usage.csv"`)
	header["Cache-Control"] = noStore
	table := csv.NewWriter(w)
	table.UseCRLF = true
	record := append(slices.Clone(q.groups), "requests", "prompt_tokens", "completion_tokens", "cached_tokens",
		"reasoning_tokens", "estimated", "session_seconds", "jobs", "cost", "currency",
		"jobs_completed", "batch_requests", "batch_cost", "audio_seconds", "characters")
	_ = table.Write(record) // fails if the client has disconnected
	for _, row := range rows {
		record = record[:0]
		for _, group := range q.groups {
			value := row.column(group)
			if value != "" && strings.ContainsRune("=+-@\t\r", rune(value[0])) {
				value = "'" + value // a spreadsheet would run it as a formula
			}
			record = append(record, value)
		}
		for _, n := range []int64{row.Requests, row.PromptTokens, row.CompletionTokens, row.CachedTokens,
			row.ReasoningTokens, row.Estimated, row.SessionSeconds, row.Jobs} {
			record = append(record, strconv.FormatInt(n, 10))
		}
		_ = table.Write(append(record, string(row.Cost), row.Currency, strconv.FormatInt(row.JobsCompleted, 10),
			strconv.FormatInt(row.BatchRequests, 10), string(row.BatchCost),
			strconv.FormatInt(row.AudioSeconds, 10), strconv.FormatInt(row.Characters, 10)))
	}
	table.Flush()
	return nil
}

func parseDay(text, param string, otherwise time.Time) (time.Time, error) {
	if text == "" {
		return otherwise, nil
	}
	parsed, err := time.Parse(time.DateOnly, text)
	if err != nil {
		return time.Time{}, wrongQuery(param, "A day must have the form YYYY-MM-DD.")
	}
	return parsed, nil
}
