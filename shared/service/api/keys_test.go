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

type aKey struct {
	ID, Label, Tier string
	Admin           bool
	CreatedAt       string  `json:"created_at"`
	RevokedAt       *string `json:"revoked_at"`
	ExpiresAt       *string `json:"expires_at"`
	Models, Routes  []string
	Key             string
}

func (w *world) askKey(key, body string, header ...string) answer {
	w.t.Helper()
	return w.request(http.MethodPost, "/v1/keys", key, strings.NewReader(body),
		append(header, "Content-Type: application/json")...)
}

func (w *world) createdKey(a answer) (made aKey) {
	w.t.Helper()
	if err := json.Unmarshal([]byte(a.body), &made); err != nil || a.status != http.StatusOK ||
		credential.CheckSecret(made.Key) != nil || made.ID != idOf(made.Key) {
		w.t.Fatalf("%d %s, %v", a.status, a.body, err)
	}
	return made
}

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

func TestKeyRequestIsValidated(t *testing.T) {
	w := newWorld(t, setup{})
	admin := w.newAdmin("studio")
	var outcomes []outcome
	for _, c := range []struct{ says, body string }{
		{"only a label", `{"label": "render farm"}`},
		{"every field", `{"label": "née – \"7\"", "tier": "default", "admin": true}`},
		{"null counts as absent", `{"label": "x", "tier": null, "admin": null}`},
		{"unknown fields are ignored", `{"label": "x", "account": "rival", "id": "key_0"}`},
		{"a label of 128 code points", `{"label": "` + strings.Repeat("é", 128) + `"}`},
		{"a label of 129 code points", `{"label": "` + strings.Repeat("é", 129) + `"}`},
		{"an empty label", `{"label": ""}`},
		{"a label with an escape sequence", `{"label": "\u001b[31mred"}`},
		{"a label with a line break", `{"label": "a\n"}`},
		{"a label that is not text", `{"label": 7}`},
		{"no body", ""},
		{"null", "null"},
		{"another tier", `{"label": "x", "tier": "dev"}`},
		{"admin as text", `{"label": "x", "admin": "true"}`},
		{"admin as a number", `{"label": "x", "admin": 1}`},
		{"limits", `{"label": "x", "expires_at": "2999-01-31T12:00:00+02:00", "models": ["gen-latest"],
			"routes": ["jobs", "tokens"]}`},
		{"a time that has passed", `{"label": "x", "expires_at": "2020-01-01T00:00:00Z"}`},
		{"a time after the year 9999 in UTC", `{"label": "x", "expires_at": "9999-12-31T23:59:59-23:59"}`},
		{"a time in words", `{"label": "x", "expires_at": "tomorrow"}`},
		{"a time as a number", `{"label": "x", "expires_at": 7}`},
		{"no models", `{"label": "x", "models": []}`},
		{"an unknown model and a number", `{"label": "x", "models": ["gen-9", 7]}`},
		{"models as text", `{"label": "x", "models": "gen-2.5"}`},
		{"an unknown route", `{"label": "x", "routes": ["jobs", "/v1/jobs"]}`},
		{"no routes", `{"label": "x", "routes": []}`},
		{"null limits nothing", `{"label": "x", "expires_at": null, "models": null, "routes": null}`},
		{"all problems, in the order of the fields", `{"admin": [], "tier": 5, "label": null, "routes": 1, "models": 1,
			"expires_at": 1}`},
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

// A new key has the limits of its tier. The list omits the secret, which is not stored.
func TestCreatedKeyWorksUntilRevoked(t *testing.T) {
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
		t.Errorf("the revoked key is listed as %+v", listed[0])
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

// Keys expire at the exact millisecond, even if they are cached because they were just used.
func TestKeyExpires(t *testing.T) {
	w := newWorld(t, setup{})
	admin := w.newAdmin("studio")
	end := w.now().Add(30 * time.Second).UTC().Truncate(time.Millisecond)
	made := w.createdKey(w.askKey(admin, `{"label": "x", "admin": true, "expires_at": "`+end.Format(time.RFC3339Nano)+`"}`))
	if made.ExpiresAt == nil || *made.ExpiresAt != end.Format("2006-01-02T15:04:05.000Z") {
		t.Errorf("made %+v, want the end %s", made, end)
	}
	minted := w.request("POST", "/v1/client/tokens", made.Key, strings.NewReader(`{"expiresIn": 3600}`))
	var token struct{ APIKey, ExpiresAt string }
	if err := json.Unmarshal([]byte(minted.body), &token); err != nil || token.ExpiresAt != *made.ExpiresAt {
		t.Errorf("the token: %d %s", minted.status, minted.body)
	}
	id := w.submit(made.Key)
	for _, secret := range []string{made.Key, token.APIKey} {
		if a := w.get("/v1/jobs/"+id, secret); a.status != http.StatusOK {
			t.Errorf("%d %s", a.status, a.body)
		}
	}
	w.later.Add(int64(30 * time.Second))
	for secret, detail := range map[string]string{
		made.Key: "The API key has expired.", token.APIKey: "The client token has expired.",
	} {
		if a := w.get("/v1/jobs/"+id, secret); a.status != http.StatusUnauthorized || a.detail() != detail {
			t.Errorf("expired: %d %s", a.status, a.body)
		}
	}
}

// A limited key can create tokens only for its models.
func TestLimitedKeySeesOnlyItsModels(t *testing.T) {
	w := newWorld(t, setup{})
	job := w.submit(studio)
	other := w.limitedAdmin("studio", credential.Limits{Models: []string{"gen-2.5"}})
	own := w.limitedAdmin("studio", credential.Limits{Models: []string{"gen-pro-t2v"}})
	if a := w.get("/v1/jobs", other); a.status != 200 || strings.Contains(a.body, job) {
		t.Errorf("another model's jobs: %d %s", a.status, a.body)
	}
	if a := w.get("/v1/jobs", own); a.status != 200 || !strings.Contains(a.body, job) {
		t.Errorf("its model's jobs: %d %s", a.status, a.body)
	}
	mint := func(body string) answer {
		return w.request("POST", "/v1/client/tokens", other, strings.NewReader(body))
	}
	if a := mint(`{"allowedModels": ["gen-latest", "gen-2.1"]}`); a.status != 403 ||
		a.detail() != "The API key does not allow the model gen-2.1." {
		t.Errorf("a token for other models: %d %s", a.status, a.body)
	}
	if a := mint(`{"allowedModels": ["gen-latest"]}`); a.status != 200 {
		t.Errorf("a token for an alias: %d %s", a.status, a.body)
	}
	if a := mint(``); a.status != 200 || !strings.Contains(a.body, `"models":["gen-2.5"]`) {
		t.Errorf("a token without models: %d %s", a.status, a.body)
	}
}

// Fields that the request omits are copied from the admin key.
func TestLimitedAdminCannotExtendRights(t *testing.T) {
	w := newWorld(t, setup{})
	end := w.now().Add(time.Hour).UTC().Truncate(time.Millisecond)
	admin := w.makeKeyOf("studio", func(key *credential.Key) {
		key.Admin, key.ExpiresAt = true, end
		key.Limits = credential.Limits{
			Models: []string{"gen-latest", "gen-2.1"}, Routes: []credential.RouteGroup{"keys", "jobs", "images"},
		}
	})
	written := func(at time.Time) string { return `"` + at.Format(time.RFC3339Nano) + `"` }
	for _, c := range []struct {
		fields string
		status int
	}{
		{`"models": ["gen-2.1"], "routes": ["jobs"], "expires_at": ` + written(end), 200},
		{`"models": ["gen-2.1", "gen-pro-t2v"]`, 403},
		{`"models": ["gen-2.5"]`, 403}, // the alias gen-latest may name another model later
		{`"routes": ["jobs", "files"]`, 403},
		{`"expires_at": ` + written(end.Add(time.Millisecond)), 403},
	} {
		if a := w.askKey(admin, `{"label": "x", `+c.fields+`}`); a.status != c.status {
			t.Errorf("%s: %d %s, want %d", c.fields, a.status, a.body, c.status)
		}
	}
	made := w.createdKey(w.askKey(admin, `{"label": "heir", "admin": true}`))
	if made.ExpiresAt == nil || *made.ExpiresAt != end.Format("2006-01-02T15:04:05.000Z") ||
		!slices.Equal(made.Models, []string{"gen-latest", "gen-2.1"}) ||
		!slices.Equal(made.Routes, []string{"keys", "jobs", "images"}) {
		t.Errorf("made %+v", made)
	}
}

// A limited admin key can revoke only keys that it could have created.
func TestLimitedAdminCannotRevokeStrongerKey(t *testing.T) {
	w := newWorld(t, setup{})
	end := w.now().Add(time.Hour).UTC().Truncate(time.Millisecond)
	by := func(change func(*credential.Key)) string {
		return w.makeKeyOf("studio", func(key *credential.Key) {
			key.Admin = true
			change(key)
		})
	}
	full := by(func(*credential.Key) {})
	for what, admin := range map[string]string{
		"models": by(func(key *credential.Key) { key.Limits.Models = []string{"gen-2.5"} }),
		"routes": by(func(key *credential.Key) { key.Limits.Routes = []credential.RouteGroup{"keys"} }),
		"an end": by(func(key *credential.Key) { key.ExpiresAt = end }),
	} {
		if a := w.revokeBy(admin, idOf(full)); a.status != http.StatusForbidden || !strings.Contains(a.body, "has more permissions") {
			t.Errorf("a key with %s: %d %s", what, a.status, a.body)
		}
		made := w.createdKey(w.askKey(admin, `{"label": "x"}`)).ID
		if a := w.revokeBy(admin, made); a.status != http.StatusNoContent {
			t.Errorf("a key with %s that it created: %d %s", what, a.status, a.body)
		}
	}
}

// An admin key cannot revoke another account's keys either. Once revoked, it has no permissions.
func TestAdminCannotRevokeItself(t *testing.T) {
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
	// Use the second key first, so that both keys are cached as valid.
	if w.listedKeys(second); w.revokeBy(admin, idOf(second)).status != http.StatusNoContent {
		t.Fatal("a second admin key cannot be revoked")
	}
	for what, a := range map[string]answer{
		"creates another key": w.askKey(second, `{"label": "x", "admin": true}`), "revokes its revoker": w.revokeBy(second,
			idOf(admin)),
	} {
		if a.status != http.StatusUnauthorized {
			t.Errorf("a revoked key %s: %d %s", what, a.status, a.body)
		}
	}
}

func TestNumberOfKeysIsLimited(t *testing.T) {
	w := newWorld(t, setup{})
	admin := w.newAdmin("studio")
	last := ""
	for range credential.MaxKeys - 2 { // all but the admin key and the account's first key
		last = w.newKey("studio")
	}
	if a := w.askKey(admin, `{"label": "x"}`); a.status != http.StatusConflict ||
		a.detail() != "The account has reached its limit of 100 keys. Revoke a key first." {
		t.Errorf("%d %s", a.status, a.body)
	}
	w.revoke(last)
	w.createdKey(w.askKey(admin, `{"label": "x"}`))
	if listed := w.listedKeys(admin); len(listed) != credential.MaxKeys+1 {
		t.Errorf("%d keys are listed", len(listed))
	}
}

// Another API key does not get the new key.
func TestRetriedKeyRequestGetsTheSameKey(t *testing.T) {
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
		t.Errorf("%d keys were created", n)
	}
	if kept, err := os.ReadFile(w.database + "-wal"); err != nil || strings.Contains(string(kept), made.Key) {
		t.Errorf("the key is kept, or %v", err)
	}
}
