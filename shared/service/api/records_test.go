package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cutroom/shared/domain/credential"
)

// recordCalls makes one call of each kind that creates records, and returns the responses by name.
func (w *world) recordCalls(key, other, file string) map[string]answer {
	body := func(method, path, text string) answer {
		return w.request(method, path, key, strings.NewReader(text), "Content-Type: application/json")
	}
	return map[string]answer{
		"a job":             w.post("gen-2.5", key, text("data", file)),
		"a token":           body(http.MethodPost, "/v1/client/tokens", `{}`),
		"a key":             body(http.MethodPost, "/v1/keys", `{"label":"x"}`),
		"a budget":          body(http.MethodPut, "/v1/budgets", `{"key":"`+other+`","period":"day","unit":"jobs","limit":1}`),
		"an announced file": w.announceHuge(key),
		"a file":            w.send(key, upload("file", "x")),
	}
}

// When the disk is full, reading and deleting still work.
func TestRecordsKeepDiskReserve(t *testing.T) {
	var full atomic.Bool
	w := newWorld(t, setup{free: func() (int64, error) {
		if full.Load() {
			return -1, nil
		}
		return 1 << 30, nil
	}})
	stored := w.keep(studio, clip(t))
	pending := w.accepted(w.post("gen-2.5", studio, text("data", stored.ID)))
	admin := w.newAdmin("studio")
	other := w.createdKey(w.askKey(admin, `{"label": "x"}`)).ID
	full.Store(true)
	for name, a := range w.recordCalls(admin, other, stored.ID) {
		if a.status != 507 || a.header.Get("Retry-After") == "" || a.detail() == "" {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	if a := w.get("/v1/jobs", studio); a.status != 200 {
		t.Errorf("a list: %d %s", a.status, a.body)
	}
	for _, path := range []string{"/v1/files/" + stored.ID, "/v1/jobs/" + pending} {
		if a := w.request(http.MethodDelete, path, studio, nil); a.status >= 300 {
			t.Errorf("delete %s: %d %s", path, a.status, a.body)
		}
	}
	full.Store(false)
	w.keep(studio, "x")
}

// The limit is in bytes per day and includes deleted records.
func TestRecordsPerAccountAreLimited(t *testing.T) {
	w := newWorld(t, setup{})
	admins := map[string]string{"studio": w.newAdmin("studio"), "rival": w.newAdmin("rival")}
	others := map[string]string{}
	files := map[string]string{"studio": w.keep(studio, clip(t)).ID, "rival": w.keep(rival, clip(t)).ID}
	for account, admin := range admins {
		others[account] = w.createdKey(w.askKey(admin, `{"label": "x"}`)).ID
	}
	found, err := w.keys.FindKey(t.Context(), credential.HashOf(studio))
	if err != nil {
		t.Fatal(err)
	}
	w.stopClock() // otherwise the limit would recover by 12 KiB per second
	made := 0
	for size := 8 << 20; size > 1; {
		token := credential.Token{
			Hash: credential.HashOf(fmt.Sprint(made)), Key: found, Metadata: json.RawMessage(`"` + strings.Repeat("x", size) + `"`),
			CreatedAt: w.now(), ExpiresAt: w.now(),
		}
		if err := w.keys.CreateToken(t.Context(), token); err != nil {
			size /= 2
		} else if made += size; made > 80<<20 {
			t.Fatalf("%d bytes of records were created", made)
		}
	}
	refused := func(account string) (n int) {
		t.Helper()
		for name, a := range w.recordCalls(admins[account], others[account], files[account]) {
			if a.status == 429 && a.header.Get("Retry-After") != "" && strings.Contains(a.detail(), "records") {
				n++
			} else if a.status != 200 && a.status != 201 {
				t.Errorf("%s: %d %s", name, a.status, a.body)
			}
		}
		return n
	}
	if n := refused("studio"); n != 6 {
		t.Errorf("%d calls were rejected", n)
	}
	if n := refused("rival"); n != 0 {
		t.Errorf("%d calls of another account were rejected", n)
	}
	w.pass(time.Hour)
	if n := refused("studio"); n != 0 {
		t.Errorf("an hour later %d calls were rejected", n)
	}
}
