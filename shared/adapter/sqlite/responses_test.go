package sqlite_test

import (
	"testing"
	"time"

	"cutroom/shared/domain/response"
	"cutroom/shared/domain/response/responsetest"
)

func TestResponsesConform(t *testing.T) { responsetest.Run(t, open(t).Responses()) }

func TestSweepDeletesExpiredResponses(t *testing.T) {
	store, now := open(t).Responses(), time.Now()
	for _, id := range []string{"old", "new"} {
		if err := store.Keep(t.Context(), "acme", id, []byte("x"), now); err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Minute)
	}
	if err := store.Sweep(t.Context(), now.Add(response.Age-90*time.Second)); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]string{"old": "", "new": "x"} {
		if got, err := store.Find(t.Context(), "acme", id, now.Add(-time.Minute)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", id, got, err)
		}
	}
}
