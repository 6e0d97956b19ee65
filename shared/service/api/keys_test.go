package api_test

import (
	"encoding/json"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"cutroom/shared/domain/credential"
)

// aKey is a key as the service shows it.
type aKey struct {
	ID, Label, Tier string
	Admin           bool
	CreatedAt       string  `json:"created_at"`
	RevokedAt       *string `json:"revoked_at"`
	Key             string
}

// askKey asks for a key.
func (w *world) askKey(key, body string, header ...string) answer {
	w.t.Helper()
	return w.request(http.MethodPost, "/v1/keys", key, strings.NewReader(body),
		append(header, "Content-Type: application/json")...)
}

// createdKey returns the key in a response.
func (w *world) createdKey(a answer) (made aKey) {
	w.t.Helper()
	if err := json.Unmarshal([]byte(a.body), &made); err != nil || a.status != http.StatusOK ||
		credential.CheckSecret(made.Key) != nil || made.ID != idOf(made.Key) {
		w.t.Fatalf("%d %s, %v", a.status, a.body, err)
	}
	return made
}

// listedKeys returns the keys that an admin key lists.
func (w *world) listedKeys(key string) []aKey {
	w.t.Helper()
	a := w.get("/v1/keys", key)
	var body struct{ Keys []aKey }
	if err := json.Unmarshal([]byte(a.body), &body); err != nil || a.status != http.StatusOK {
		w.t.Fatalf("%d %s, %v", a.status, a.body, err)
	}
	return body.Keys
}

func (w *world) revokeBy(key, id string) answer {
	w.t.Helper()
	return w.request(http.MethodDelete, "/v1/keys/"+id, key, nil)
}

// What may be requested of a new key, and how anything else is refused.
func TestKeyRequests(t *testing.T) {
	w := newWorld(t, setup{})
	admin := w.newAdmin("studio")
	var outcomes []outcome
	for _, c := range []struct{ says, body string }{
		{"a label alone", `{"label": "render farm"}`},
		{"every field", `{"label": "née – \"7\"", "tier": "default", "admin": true}`},
		{"null counts as absent", `{"label": "x", "tier": null, "admin": null}`},
		{"unknown fields are ignored", `{"label": "x", "account": "rival", "id": "key_0"}`},
		{"a label of 128 code points", `{"label": "` + strings.Repeat("é", 128) + `"}`},
		{"a label of 129 code points", `{"label": "` + strings.Repeat("é", 129) + `"}`},
		{"an empty label", `{"label": ""}`},
		{"a label with an escape sequence", `{"label": "\u001b[31mred"}`},
		{"a label with a line break", `{"label": "a\n"}`},
		{"a label that is no text", `{"label": 7}`},
		{"no body", ""},
		{"null", "null"},
		{"another tier", `{"label": "x", "tier": "dev"}`},
		{"admin as text", `{"label": "x", "admin": "true"}`},
		{"admin as a number", `{"label": "x", "admin": 1}`},
		{"all problems at once, in field order", `{"admin": [], "tier": 5, "label": null}`},
		{"no JSON", `{"label"`},
		{"a list", `[{"label": "x"}]`},
	} {
		a := w.askKey(admin, c.body)
		if a.status != http.StatusOK {
			outcomes = append(outcomes, w.refusal(c.says, a))
			continue
		}
		made := w.createdKey(a)
		var body map[string]any
		if err := json.Unmarshal([]byte(a.body), &body); err != nil {
			t.Fatal(err)
		}
		if _, err := time.Parse("2006-01-02T15:04:05.000Z", made.CreatedAt); err != nil {
			t.Error(err)
		}
		body["id"], body["key"], body["created_at"] = "key_…", "ck_…", "now"
		outcomes = append(outcomes, outcome{c.says, a.status, []any{body}})
	}
	golden(t, "keys", outcomes)
}

// A key that an admin created works until it is revoked, with the limits of the
// admin's tier. The list shows everything but the secret, which is stored nowhere.
func TestAKeyFromCreationToRevocation(t *testing.T) {
	w := newWorld(t, setup{})
	admin := w.newAdmin("studio")
	w.later.Add(int64(time.Millisecond))
	a := w.askKey(admin, `{"label": "ci"}`)
	made := w.createdKey(a)
	if a.header.Get("Cache-Control") != "no-store" || made.Admin || made.Tier != credential.DefaultTier ||
		made.RevokedAt != nil {
		t.Errorf("%v %s", a.header, a.body)
	}
	id := w.submit(made.Key)
	if a := w.get("/v1/jobs/"+id, studio); a.status != http.StatusOK {
		t.Errorf("the account does not see the job of its new key: %d", a.status)
	}
	if a := w.get("/v1/keys", made.Key); a.status != http.StatusForbidden ||
		a.detail() != "An admin key of the account is required." {
		t.Errorf("as an admin it gets %d %s", a.status, a.body)
	}
	listed := w.listedKeys(admin)
	if len(listed) != 3 || listed[0].ID != made.ID || listed[0].Label != "ci" || listed[0].Key != "" ||
		listed[0].CreatedAt != made.CreatedAt {
		t.Errorf("listed %+v, want the new one, the admin's and the first", listed)
	}
	token := w.mint(made.Key, credential.Scope{})
	for range 2 {
		if a := w.revokeBy(admin, made.ID); a.status != http.StatusNoContent || a.body != "" {
			t.Fatalf("%d %s", a.status, a.body)
		}
	}
	if listed := w.listedKeys(admin); listed[0].RevokedAt == nil {
		t.Errorf("revoked, it is listed as %+v", listed[0])
	}
	w.later.Add(int64(credential.CacheAge))
	for _, secret := range []string{made.Key, token} {
		if a := w.get("/v1/jobs/"+id, secret); a.status != http.StatusUnauthorized {
			t.Errorf("%.3s… after the revocation: %d", secret, a.status)
		}
	}
	for _, path := range []string{w.database, w.database + "-wal"} {
		if kept, err := os.ReadFile(path); err != nil || strings.Contains(string(kept), made.Key) {
			t.Errorf("the key is kept in %s, or %v", path, err)
		}
	}
	if strings.Contains(w.log.String(), made.Key) {
		t.Error("the key is in the log")
	}
}

// An admin key cannot revoke itself or another account's keys, nor do anything once
// it is revoked.
func TestKeysThatCannotBeRevoked(t *testing.T) {
	w := newWorld(t, setup{})
	admin, second, foreign := w.newAdmin("studio"), w.newAdmin("studio"), w.newAdmin("rival")
	if a := w.revokeBy(admin, idOf(admin)); a.status != http.StatusConflict ||
		a.detail() != "A key cannot revoke itself. Use another admin key of the account." {
		t.Errorf("itself: %d %s", a.status, a.body)
	}
	for _, id := range []string{idOf(foreign), idOf(rival), "key_0123456789ab", "key_", "x", strings.Repeat("x", 5000)} {
		if a := w.revokeBy(admin, id); a.status != http.StatusNotFound || a.detail() != "Key not found." {
			t.Errorf("%.20s: %d %s", id, a.status, a.body)
		}
	}
	for _, secret := range []string{foreign, rival} {
		if key, err := w.keys.FindKey(t.Context(), credential.HashOf(secret)); err != nil || !key.RevokedAt.IsZero() {
			t.Errorf("another account's key is %+v, %v", key, err)
		}
	}
	// Both keys are cached as valid for a while.
	if w.listedKeys(second); w.revokeBy(admin, idOf(second)).status != http.StatusNoContent {
		t.Fatal("a second admin key cannot be revoked")
	}
	for what, a := range map[string]answer{
		"makes a successor": w.askKey(second, `{"label": "x", "admin": true}`), "revokes its revoker": w.revokeBy(second,
			idOf(admin)),
	} {
		if a.status != http.StatusUnauthorized {
			t.Errorf("a revoked key %s: %d %s", what, a.status, a.body)
		}
	}
}

// An account cannot have more keys than the limit; revoked ones do not count.
func TestTheNumberOfKeysIsLimited(t *testing.T) {
	w := newWorld(t, setup{})
	admin := w.newAdmin("studio")
	last := ""
	for range credential.MaxKeys - 2 { // the admin's own, and the account's first one
		last = w.newKey("studio")
	}
	if a := w.askKey(admin, `{"label": "x"}`); a.status != http.StatusConflict ||
		a.detail() != "The account has 100 keys, which is its limit. Revoke one first." {
		t.Errorf("%d %s", a.status, a.body)
	}
	w.revoke(last)
	w.createdKey(w.askKey(admin, `{"label": "x"}`))
	if listed := w.listedKeys(admin); len(listed) != credential.MaxKeys+1 {
		t.Errorf("%d keys are listed", len(listed))
	}
}

// A repeated key request returns the same key to a caller with the same API key.
func TestARepeatedKeyRequest(t *testing.T) {
	w := newWorld(t, setup{})
	admin, second := w.newAdmin("studio"), w.newAdmin("studio")
	first := w.askKey(admin, `{"label": "ci"}`, "Idempotency-Key: a")
	made := w.createdKey(first)
	w.replays(w.askKey(admin, `{"label": "ci", "tier": "default", "admin": false}`, "Idempotency-Key: a"), first)
	for what, a := range map[string]answer{
		"another label":   w.askKey(admin, `{"label": "cd"}`, "Idempotency-Key: a"),
		"another API key": w.askKey(second, `{"label": "ci"}`, "Idempotency-Key: a"),
	} {
		if a.status != http.StatusConflict || strings.Contains(a.body, "ck_") {
			t.Errorf("%s: %d %s", what, a.status, a.body)
		}
	}
	if n := len(slices.DeleteFunc(w.listedKeys(admin), func(k aKey) bool { return k.Label != "ci" })); n != 1 {
		t.Errorf("%d keys were made", n)
	}
	if kept, err := os.ReadFile(w.database + "-wal"); err != nil || strings.Contains(string(kept), made.Key) {
		t.Errorf("the key is kept, or %v", err)
	}
}
