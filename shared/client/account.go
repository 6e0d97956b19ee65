package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Quota states the account's limit of realtime sessions, how many are open, and how many more it may open.
type Quota struct {
	Limit     int `json:"limit"`
	Active    int `json:"active"`
	Remaining int `json:"remaining"`
}

func (c *Client) Quota(ctx context.Context) (Quota, error) {
	var quota Quota
	err := c.get(ctx, c.media(http.MethodGet, "/v1/realtime/quota", nil), &quota)
	return quota, err
}

// See docs/contract/auth.md#client-tokens.
type TokenRequest struct {
	// ExpiresIn is the token's lifetime in seconds. 0 means the service's default.
	ExpiresIn int `json:"expiresIn,omitempty"`
	// Empty lists mean no restriction.
	AllowedModels  []string `json:"allowedModels,omitempty"`
	AllowedOrigins []string `json:"allowedOrigins,omitempty"`
}

type Token struct {
	APIKey    string    `json:"apiKey"`
	ExpiresAt time.Time `json:"expiresAt"`

	Raw json.RawMessage `json:"-"`
}

func (c *Client) CreateToken(ctx context.Context, wanted TokenRequest) (Token, error) {
	encoded, err := jsonBody(wanted)
	if err != nil {
		return Token{}, err
	}
	answer, err := c.fetch(ctx, c.creating(c.media(http.MethodPost, "/v1/client/tokens", encoded)))
	if err != nil {
		return Token{}, err
	}
	token := Token{Raw: answer}
	err = decode(answer, &token)
	return token, err
}

type Usage struct {
	Day     string `json:"day,omitempty"`
	Model   string `json:"model,omitempty"`
	Key     string `json:"key,omitempty"`
	Label   string `json:"label,omitempty"`
	Account string `json:"account,omitempty"`

	Requests         int64 `json:"requests"`
	PromptTokens     int64 `json:"prompt_tokens"`
	CompletionTokens int64 `json:"completion_tokens"`
	CachedTokens     int64 `json:"cached_tokens"`
	ReasoningTokens  int64 `json:"reasoning_tokens"`
	// Estimated counts requests whose tokens the model server did not report.
	Estimated      int64   `json:"estimated"`
	SessionSeconds int64   `json:"session_seconds,omitempty"`
	AudioSeconds   int64   `json:"audio_seconds,omitempty"`
	Characters     int64   `json:"characters,omitempty"`
	Jobs           int64   `json:"jobs,omitempty"`
	JobsCompleted  int64   `json:"jobs_completed,omitempty"`
	Cost           float64 `json:"cost,omitempty"`
	Currency       string  `json:"currency,omitempty"`
	// BatchRequests and BatchCost are the parts of Requests and Cost that are due to batches.
	BatchRequests int64   `json:"batch_requests,omitempty"`
	BatchCost     float64 `json:"batch_cost,omitempty"`
}

type UsageQuery struct {
	// From and To are inclusive days in the format 2006-01-02. "" means the service's default.
	From, To string
	// GroupBy lists the fields to group by: day, model, key, label or account. The default is day and model.
	GroupBy []string
}

func (q UsageQuery) path(format string) string {
	query := url.Values{}
	for name, value := range map[string]string{
		"from": q.From, "to": q.To, "group_by": strings.Join(q.GroupBy, ","), "format": format,
	} {
		if value != "" {
			query.Set(name, value)
		}
	}
	return "/v1/usage?" + query.Encode()
}

func (c *Client) Usage(ctx context.Context, q UsageQuery) ([]Usage, error) {
	var page struct {
		Data []Usage `json:"data"`
	}
	err := c.get(ctx, c.inference(http.MethodGet, q.path(""), nil), &page)
	return page.Data, err
}

// UsageTable returns the usage as CSV (RFC 4180). The first row holds the column names.
func (c *Client) UsageTable(ctx context.Context, q UsageQuery) (string, error) {
	table, err := c.fetch(ctx, c.inference(http.MethodGet, q.path("csv"), nil))
	return string(table), err
}
