package api_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"cutroom/shared/domain/credential"
)

type anEntry struct {
	ID, At, By, Action, Subject string
	RequestID                   *string `json:"request_id"`
	Before, After               *aKey
}

func (w *world) audited(key, query string) (entries []anEntry, next string) {
	w.t.Helper()
	a := w.get("/v1/audit"+query, key)
	var page struct {
		Entries    []anEntry
		NextCursor *string `json:"next_cursor"`
	}
	if err := json.Unmarshal([]byte(a.body), &page); err != nil || a.status != http.StatusOK {
		w.t.Fatalf("%d %s, %v", a.status, a.body, err)
	}
	if page.NextCursor != nil {
		next = *page.NextCursor
	}
	return page.Entries, next
}

// An entry has the actor, time, action, request id, and the key before and after, without secrets.
func TestAuditLogRecordsKeys(t *testing.T) {
	w := newWorld(t, setup{})
	admin := w.newAdmin("studio")
	asked := w.askKey(admin, `{"label": "ci", "routes": ["jobs"]}`)
	made := w.createdKey(asked)
	w.askKey(admin, `{"label": ""}`)
	gone := w.revokeBy(admin, made.ID)
	w.revokeBy(admin, made.ID)
	entries, next := w.audited(admin, "?limit=2")
	if len(entries) != 2 || next != entries[1].ID {
		t.Fatalf("the log is %+v, and continues at %q", entries, next)
	}
	for i, want := range []struct {
		action string
		answer answer
	}{{"key.revoked", gone}, {"key.created", asked}} {
		e := entries[i]
		if e.Action != want.action || e.By != idOf(admin) || e.Subject != made.ID || e.RequestID == nil ||
			*e.RequestID != want.answer.header.Get("X-Request-Id") || e.After == nil || e.After.Label != "ci" ||
			len(e.After.Routes) != 1 {
			t.Errorf("entry %d is %+v", i, e)
		}
	}
	if revoked := entries[0]; revoked.Before == nil || revoked.Before.RevokedAt != nil || revoked.After.RevokedAt == nil {
		t.Errorf("the revocation is %+v", revoked)
	}
	rest, next := w.audited(admin, "?cursor="+next)
	if len(rest) != 2 || next != "" || rest[0].By != "operator" || rest[0].RequestID != nil || rest[0].Before != nil {
		t.Errorf("the rest is %+v, and continues at %q", rest, next)
	}
	if a := w.get("/v1/audit", admin); strings.Contains(a.body, made.Key) ||
		strings.Contains(a.body, credential.HashOf(made.Key).String()) {
		t.Errorf("the log shows a secret: %s", a.body)
	}
	if foreign, _ := w.audited(w.newAdmin("rival"), ""); len(foreign) != 2 {
		t.Errorf("another account sees %+v", foreign)
	}
}

// Setting a budget to its current value is not recorded.
func TestAuditLogRecordsBudgets(t *testing.T) {
	w := newWorld(t, setup{})
	admin := w.newAdmin("studio")
	key := idOf(studio)
	set := `{"key": "` + key + `", "period": "day", "unit": "jobs", "limit": 3}`
	for range 2 {
		if a := w.request("PUT", "/v1/budgets", admin, strings.NewReader(set), "Content-Type: application/json"); a.status != 200 {
			t.Fatalf("%d %s", a.status, a.body)
		}
	}
	if a := w.request("DELETE", "/v1/budgets?period=day&unit=jobs&key="+key, admin, nil); a.status != 204 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	entries, _ := w.audited(admin, "")
	if len(entries) < 3 || entries[0].Action != "budget.deleted" || entries[1].Action != "budget.set" ||
		entries[2].Action != "key.created" {
		t.Fatalf("the log is %+v", entries)
	}
	for _, e := range entries[:2] {
		if e.Subject != key+"/day/jobs" || e.By != idOf(admin) || e.RequestID == nil {
			t.Errorf("an entry is %+v", e)
		}
	}
	if entries[0].Before == nil || entries[0].After != nil || entries[1].Before != nil || entries[1].After == nil {
		t.Errorf("the entries are %+v", entries[:2])
	}
}

func TestAuditLogIsFilteredByDay(t *testing.T) {
	w := newWorld(t, setup{})
	admin := w.newAdmin("studio")
	all, _ := w.audited(admin, "")
	day := all[0].At[:len("2006-01-02")]
	for query, want := range map[string]int{
		"?from=" + day: len(all), "?from=2999-01-01": 0, "?to=2001-01-01": 0, "?from=2001-01-01&to=2999-01-01": len(all),
		"?from=2999-01-01&to=2001-01-01": 0,
	} {
		if got, _ := w.audited(admin, query); len(got) != want {
			t.Errorf("%s: %d entries, want %d", query, len(got), want)
		}
	}
	for _, query := range []string{"?from=today", "?to=7", "?to=", "?limit=0", "?limit=1001", "?cursor=x", "?cursor=aud_0-1"} {
		if a := w.get("/v1/audit"+query, admin); a.status != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d %s", query, a.status, a.body)
		}
	}
}
