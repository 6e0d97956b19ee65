package api_test

import (
	"fmt"
	"testing"
	"time"

	"cutroom/shared/domain/session"
)

func (w *world) openSessions(account string, n int) (slots []session.Slot) {
	w.t.Helper()
	const epoch = "epoch"
	if err := w.live.Begin(w.t.Context(), epoch, ""); err != nil {
		w.t.Fatal(err)
	}
	for i := range n {
		slot := session.Slot{ID: fmt.Sprint("session_", i), Account: account, Epoch: epoch}
		if err := w.live.Take(w.t.Context(), slot, 0); err != nil {
			w.t.Fatal(err)
		}
		slots = append(slots, slot)
	}
	return slots
}

func (w *world) quota(key, want string) {
	w.t.Helper()
	if a := w.get("/v1/realtime/quota", key); a.status != 200 || a.body != want {
		w.t.Errorf("%d %s, want %s", a.status, a.body, want)
	}
}

func TestQuotaCountsSessions(t *testing.T) {
	w := newWorld(t, setup{sessions: 3})
	w.quota(studio, `{"limit":3,"active":0,"remaining":3}`)
	slots := w.openSessions("studio", 2)
	w.quota(studio, `{"limit":3,"active":2,"remaining":1}`)
	w.quota(w.newKey("studio"), `{"limit":3,"active":2,"remaining":1}`)
	w.quota(rival, `{"limit":3,"active":0,"remaining":3}`)
	if err := w.live.Free(t.Context(), slots[0]); err != nil {
		t.Fatal(err)
	}
	w.quota(studio, `{"limit":3,"active":1,"remaining":2}`)
	w.openSessions("rival", 5)
	w.quota(rival, `{"limit":3,"active":5,"remaining":0}`)
	newWorld(t, setup{}).quota(studio, `{"limit":2147483647,"active":0,"remaining":2147483647}`)
}

// See docs/contract/realtime.md#quota.
func TestQuotaReadsAreLimited(t *testing.T) {
	w := newWorld(t, setup{sessions: 3})
	w.stopClock()
	second := w.newKey("studio")
	for range 9 {
		w.quota(studio, `{"limit":3,"active":0,"remaining":3}`)
	}
	a := w.get("/v1/realtime/quota", studio)
	if a.status != 429 || a.header.Get("Retry-After") != "1" || a.detail() == "" {
		t.Errorf("the tenth: %d %s %v", a.status, a.body, a.header)
	}
	w.quota(second, `{"limit":3,"active":0,"remaining":3}`)
	w.later.Add(int64(time.Second))
	w.quota(studio, `{"limit":3,"active":0,"remaining":3}`)
}
