package gateway

import (
	"net/http"
	"time"

	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/usage"
	"cutroom/shared/service/gateway/apierror"
)

const (
	// usageDays is how many days are returned unless "from" says otherwise.
	usageDays = 30
	// maxUsageDays bounds the range of one call.
	maxUsageDays = 366
)

// usageBody is what an account has used of one model on one day
// (docs/contract/gateway.md#usage).
type usageBody struct {
	Day              usage.Day `json:"day"`
	Model            string    `json:"model"`
	Requests         int64     `json:"requests"`
	PromptTokens     int64     `json:"prompt_tokens"`
	CompletionTokens int64     `json:"completion_tokens"`
	CachedTokens     int64     `json:"cached_tokens"`
	ReasoningTokens  int64     `json:"reasoning_tokens"`
	// Estimated counts the requests whose tokens the gateway counted itself.
	Estimated int64 `json:"estimated"`
	// SessionSeconds is set only for models with realtime sessions.
	SessionSeconds int64 `json:"session_seconds,omitempty"`
	// Jobs is set only for models that jobs were accepted for.
	Jobs int64 `json:"jobs,omitempty"`
}

// getUsage is GET /v1/usage?from=&to=: days in UTC, both included, by default
// the last 30.
func (g *Gateway) getUsage(w http.ResponseWriter, r *http.Request, who credential.Principal) error {
	if who.Token != nil {
		return credential.ErrKeyRequired
	}
	query := r.URL.Query()
	to, err := parseDay(query.Get("to"), "to", g.config.Date().UTC())
	if err != nil {
		return err
	}
	from, err := parseDay(query.Get("from"), "from", to.AddDate(0, 0, 1-usageDays))
	if err != nil {
		return err
	}
	if from.After(to) || to.Sub(from) >= maxUsageDays*24*time.Hour {
		return &apierror.Error{
			Status: http.StatusBadRequest, Type: apierror.InvalidRequest, Param: "from",
			Message: "\"from\" is not after \"to\", and at most a year before it.",
		}
	}
	totals, err := g.config.Usage.Totals(r.Context(), who.Account(), usage.DayOf(from), usage.DayOf(to))
	if err != nil {
		return err
	}
	body := struct {
		Data []usageBody `json:"data"`
	}{[]usageBody{}}
	for _, t := range totals {
		body.Data = append(body.Data, usageBody{
			Day: t.Day, Model: t.Model, Requests: t.Requests,
			PromptTokens: t.PromptTokens, CompletionTokens: t.CompletionTokens,
			CachedTokens: t.CachedTokens, ReasoningTokens: t.ReasoningTokens,
			Estimated: t.Estimated, SessionSeconds: t.SessionSeconds, Jobs: t.Jobs,
		})
	}
	return respond(w, body)
}

func parseDay(text, param string, otherwise time.Time) (time.Time, error) {
	if text == "" {
		return otherwise, nil
	}
	parsed, err := time.Parse(time.DateOnly, text)
	if err != nil {
		return time.Time{}, &apierror.Error{
			Status: http.StatusBadRequest, Type: apierror.InvalidRequest, Param: param,
			Message: "A day is written as 2006-01-02.",
		}
	}
	return parsed, nil
}
