package api

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"cutroom/shared/domain/audit"
	"cutroom/shared/domain/credential"
	"cutroom/shared/platform/httpserver"
)

type AuditLog interface {
	Entries(ctx context.Context, account string, query audit.Query) ([]audit.Entry, error)
}

// Audit is the group for reading the audit log (docs/contract/auth.md#the-audit-log). No route
// changes or deletes an entry.
func Audit(s *service) []route {
	return within(credential.KeyRoutes, []route{
		{method: http.MethodGet, path: "/v1/audit", access: adminOnly, handle: s.inTurn(s.listAudit)},
	})
}

func (s *service) origin(r *http.Request, c call) audit.Origin {
	return audit.Origin{By: c.who.Key.ID, At: s.Keys.Now(), RequestID: httpserver.RequestID(r.Context())}
}

type auditEntryBody struct {
	ID string  `json:"id"`
	At *string `json:"at"`
	// By is an admin key's id, or "operator".
	By      string       `json:"by"`
	Action  audit.Action `json:"action"`
	Subject string       `json:"subject"`
	// Before is null if the object was created. After is null if it was deleted.
	Before json.RawMessage `json:"before"`
	After  json.RawMessage `json:"after"`
	// RequestID is null if the operator made the change.
	RequestID *string `json:"request_id"`
}

func newAuditEntryBody(e audit.Entry) auditEntryBody {
	body := auditEntryBody{
		ID: e.ID, At: timestamp(e.At), By: e.By, Action: e.Action, Subject: e.Subject, Before: e.Before, After: e.After,
	}
	if e.RequestID != "" {
		body.RequestID = &e.RequestID
	}
	return body
}

type auditPageBody struct {
	Entries    []auditEntryBody `json:"entries"`
	NextCursor *string          `json:"next_cursor"`
}

// A page's cursor is the id of the last entry on the previous page.
func (s *service) listAudit(w http.ResponseWriter, r *http.Request, c call) error {
	query, found := auditQuery(r.URL.RawQuery)
	if len(found) > 0 {
		return found
	}
	limit := query.Limit
	query.Limit++ // one extra entry shows whether there is another page
	entries, err := s.AuditLog.Entries(r.Context(), c.who.Account(), query)
	if err != nil {
		return err
	}
	page := auditPageBody{Entries: []auditEntryBody{}}
	for i, e := range entries {
		if i == limit {
			page.NextCursor = &page.Entries[i-1].ID
			break
		}
		page.Entries = append(page.Entries, newAuditEntryBody(e))
	}
	s.writeJSON(w, r, http.StatusOK, page)
	return nil
}

// The range's first and last days are in UTC, and both are included.
func auditQuery(raw string) (query audit.Query, found problems) {
	values := readQuery(raw)
	for _, bound := range []struct {
		name string
		days int
		into *time.Time
	}{{"from", 0, &query.From}, {"to", 1, &query.To}} {
		text, given := values[bound.name]
		if !given {
			continue
		}
		day, err := time.Parse(time.DateOnly, text)
		if err != nil {
			found = append(found, valueProblem(bound.name, text, "Input should be a date such as 2006-01-02.").in("query"))
			continue
		}
		*bound.into = day.AddDate(0, 0, bound.days)
	}
	limit, cursor, wrong := pageQuery(raw)
	query.Limit, query.Before = limit, cursor
	found = append(found, wrong...)
	if cursor != "" && !audit.IsID(cursor) {
		found = append(found, valueProblem("cursor", cursor, "The cursor is invalid. Use the next_cursor of this list.").in("query"))
	}
	return query, found
}
