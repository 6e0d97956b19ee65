package api_test

import (
	"crypto/rand"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"cutroom/shared/domain/credential"
	"cutroom/shared/service/api"
)

// mint makes a client token of a key, which is good for an hour.
func (w *world) mint(key string, scope credential.Scope) string { return w.issue(key, scope).Secret }

// issue makes a client token of a key, which is good for an hour, in both spellings.
func (w *world) issue(key string, scope credential.Scope) credential.Issued {
	w.t.Helper()
	found, err := w.keys.FindKey(w.t.Context(), credential.HashOf(key))
	if err != nil {
		w.t.Fatal(err)
	}
	minter := credential.Minter{Store: w.keys, Random: rand.Reader, Now: w.now}
	issued, _, err := minter.Mint(w.t.Context(), found, credential.TokenRequest{Scope: scope, Lifetime: time.Hour})
	if err != nil {
		w.t.Fatal(err)
	}
	return issued
}

// scoped is a scope of one model.
func scoped(model string) credential.Scope { return credential.Scope{Models: []string{model}} }

// newKey makes another permanent key of an account.
func (w *world) newKey(account string) string { return w.makeKey(account, false) }

// newAdmin makes an admin key of an account.
func (w *world) newAdmin(account string) string { return w.makeKey(account, true) }

func (w *world) makeKey(account string, admin bool) string {
	w.t.Helper()
	secret, err := credential.NewSecret(rand.Reader)
	if err != nil {
		w.t.Fatal(err)
	}
	key, err := credential.NewKey(secret, account, credential.DefaultTier, "", w.now())
	if err == nil {
		key.Admin = admin
		err = w.keys.CreateKey(w.t.Context(), key)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return secret
}

// idOf gives the id of a key.
func idOf(secret string) string { return credential.KeyID(credential.HashOf(secret)) }

// revoke ends a permanent key.
func (w *world) revoke(secret string) {
	w.t.Helper()
	if _, err := w.keys.RevokeKey(w.t.Context(), "", idOf(secret), w.now()); err != nil {
		w.t.Fatal(err)
	}
}

// Who may do what (docs/contract/auth.md#who-may-do-what): every route that asks
// for a credential, called with every kind of one.
func TestEveryRouteWithEveryCredential(t *testing.T) {
	const origin = "https://app.example.com"
	w := newWorld(t, setup{})
	expired := w.issue(studio, credential.Scope{})
	w.later.Store(int64(time.Hour)) // which ends it
	revoked, parent := w.newKey("studio"), w.newKey("studio")
	orphan := w.issue(parent, credential.Scope{})
	w.revoke(revoked)
	w.revoke(parent)
	key := func(secret string) credential.Issued { return credential.Issued{Secret: secret} }
	credentials := []struct {
		name string
		// The JWT of a client token is to be answered as its secret is.
		credential.Issued
	}{
		{"none", key("")},
		{"garbage", credential.Issued{Secret: "hello", JWT: "eyJhbGciOiJub25lIn0.e30."}},
		{"unknown key", key("ck_0123456789")},
		{"unknown token", key("ek_0123456789")},
		{"revoked key", key(revoked)},
		{"expired token", expired},
		{"token of a revoked key", orphan},
		{"another account's key", key(rival)},
		{"another account's token", w.issue(rival, credential.Scope{})},
		{"token without this model", w.issue(studio, credential.Scope{Models: []string{"gen-2.5"}})},
		{"token of another origin", w.issue(studio, credential.Scope{Origins: []string{"https://other.example.com"}})},
		{"right key", key(studio)},
		{"right token", w.issue(studio, credential.Scope{
			Models: []string{"gen-pro-t2v", "gen-image-latest"}, Origins: []string{origin},
		})},
		{"admin key", key(w.newAdmin("studio"))},
		{"admin key of another account", key(w.newAdmin("rival"))},
		{"token of an admin key", w.issue(w.newAdmin("studio"), credential.Scope{})},
	}

	done := w.submit(studio)
	w.start(done)
	w.complete(done, "the bytes", "video/mp4")
	cancelled := w.submit(studio)
	store := func() (id, md5 string) {
		body, contentType := multiform(upload("file", "some bytes"))
		a := w.request("POST", "/v1/files", studio, strings.NewReader(body), "Content-Type: "+contentType)
		var file struct{ ID, MD5 string }
		if err := json.Unmarshal([]byte(a.body), &file); err != nil {
			t.Fatalf("%v: %s", err, a.body)
		}
		return file.ID, file.MD5
	}
	stored, md5 := store()
	doomed, _ := store()

	var covered []string
	form, formType := multiform(text("prompt", "x"))
	file, fileType := multiform(part{"file", "a.txt", "bytes"})
	for _, route := range []struct {
		// endpoint is the route's method and pattern, path what is called.
		endpoint, path, body, contentType string
		// statuses by credential, in the order of the list above.
		statuses []int
	}{
		{"POST /v1/jobs/{id}", "/v1/jobs/gen-pro-t2v", form, formType,
			[]int{401, 401, 401, 401, 401, 401, 401, 200, 200, 403, 403, 200, 200, 200, 200, 200}},
		{"GET /v1/jobs/{id}", "/v1/jobs/" + done, "", "",
			[]int{401, 401, 401, 401, 401, 401, 401, 404, 404, 403, 403, 200, 200, 200, 404, 200}},
		{"GET /v1/jobs", "/v1/jobs", "", "",
			[]int{401, 401, 401, 401, 401, 401, 401, 200, 403, 403, 403, 200, 403, 200, 200, 403}},
		{"DELETE /v1/jobs/{id}", "/v1/jobs/" + cancelled, "", "",
			[]int{401, 401, 401, 401, 401, 401, 401, 404, 404, 403, 403, 200, 200, 200, 404, 200}},
		{"GET /v1/jobs/{id}/events", "/v1/jobs/" + done + "/events", "", "",
			[]int{401, 401, 401, 401, 401, 401, 401, 404, 404, 403, 403, 200, 200, 200, 404, 200}},
		{"GET /v1/jobs/{id}/content", "/v1/jobs/" + done + "/content", "", "",
			[]int{401, 401, 401, 401, 401, 401, 401, 404, 404, 403, 403, 200, 200, 200, 404, 200}},
		{"GET /v1/jobs/{id}/deliveries", "/v1/jobs/" + done + "/deliveries", "", "",
			[]int{401, 401, 401, 401, 401, 401, 401, 404, 404, 403, 403, 200, 200, 200, 404, 200}},
		{"GET /v1/webhooks/secret", "/v1/webhooks/secret", "", "",
			[]int{401, 401, 401, 401, 401, 401, 401, 200, 403, 403, 403, 200, 403, 200, 200, 403}},
		{"POST /v1/generate/{id}", "/v1/generate/gen-image-2", form, formType, // without its file
			[]int{401, 401, 401, 401, 401, 401, 401, 422, 422, 403, 403, 422, 422, 422, 422, 422}},
		{"POST /v1/files", "/v1/files", file, fileType,
			[]int{401, 401, 401, 401, 401, 401, 401, 200, 200, 200, 403, 200, 200, 200, 200, 200}},
		{"GET /v1/files", "/v1/files", "", "",
			[]int{401, 401, 401, 401, 401, 401, 401, 200, 403, 403, 403, 200, 403, 200, 200, 403}},
		{"GET /v1/files/{file_id}", "/v1/files/" + stored, "", "",
			[]int{401, 401, 401, 401, 401, 401, 401, 404, 404, 200, 403, 200, 200, 200, 404, 200}},
		{"GET /v1/uploads/{file_id}", "/v1/uploads/" + stored, "", "",
			[]int{401, 401, 401, 401, 401, 401, 401, 404, 404, 200, 403, 200, 200, 200, 404, 200}},
		{"DELETE /v1/files/{file_id}", "/v1/files/" + doomed, "", "",
			[]int{401, 401, 401, 401, 401, 401, 401, 404, 403, 403, 403, 204, 403, 404, 404, 403}},
		{"GET /v1/files/by-md5/{md5}", "/v1/files/by-md5/" + md5, "", "",
			[]int{401, 401, 401, 401, 401, 401, 401, 404, 403, 403, 403, 200, 403, 200, 404, 403}},
		{"GET /v1/realtime/quota", "/v1/realtime/quota", "", "",
			[]int{401, 401, 401, 401, 401, 401, 401, 200, 403, 403, 403, 200, 403, 200, 200, 403}},
		{"POST /v1/client/tokens", "/v1/client/tokens", "", "",
			[]int{401, 401, 401, 401, 401, 401, 401, 200, 403, 403, 403, 200, 403, 200, 200, 403}},
		{"GET /v1/keys", "/v1/keys", "", "",
			[]int{401, 401, 401, 401, 401, 401, 401, 403, 403, 403, 403, 403, 403, 200, 200, 403}},
		{"POST /v1/keys", "/v1/keys", `{"label": "x"}`, "application/json",
			[]int{401, 401, 401, 401, 401, 401, 401, 403, 403, 403, 403, 403, 403, 200, 200, 403}},
		{"DELETE /v1/keys/{key_id}", "/v1/keys/" + idOf(w.newKey("studio")), "", "",
			[]int{401, 401, 401, 401, 401, 401, 401, 403, 403, 403, 403, 403, 403, 204, 404, 403}},
	} {
		method, _, _ := strings.Cut(route.endpoint, " ")
		covered = append(covered, route.endpoint)
		for i, credential := range credentials {
			for _, secret := range []string{credential.Secret, credential.JWT} {
				if secret == "" && i > 0 {
					continue // it has no JWT
				}
				a := w.request(method, route.path, secret, strings.NewReader(route.body),
					"Content-Type: "+route.contentType, "Origin: "+origin)
				if a.status != route.statuses[i] {
					t.Errorf("%s with %s (%.3s): %d %s, want %d", route.endpoint, credential.name, secret, a.status, a.body, route.statuses[i])
				}
				if a.status >= 400 && a.status != http.StatusUnprocessableEntity && a.detail() == "" {
					t.Errorf("%s with %s: the error is %s", route.endpoint, credential.name, a.body)
				}
				if challenged := a.header.Get("WWW-Authenticate") != ""; challenged != (a.status == http.StatusUnauthorized) {
					t.Errorf("%s with %s: %d with WWW-Authenticate %q", route.endpoint, credential.name, a.status, a.header.Get("WWW-Authenticate"))
				}
			}
		}
	}
	for _, endpoint := range api.Endpoints(api.Config{}) {
		if name := endpoint.Method + " " + endpoint.Path; !endpoint.Public && !slices.Contains(covered, name) {
			t.Errorf("%s is not in the table", name)
		}
	}
}

// The models of a token are resolved when it is used: one that was made with an
// alias reaches the model, and the other way round.
func TestATokenReachesItsModelsByAnyName(t *testing.T) {
	w := newWorld(t, setup{})
	for _, c := range []struct {
		allowed, called string
		status          int
	}{
		{"gen-2.5", "gen-latest", 422},
		{"gen-latest", "gen-2.5", 422},
		{"gen-vton-2", "gen-vton-3", 422}, // two aliases of one model
		{"gen-2.1", "gen-2.5", 403},
		{"gen-2.1", "gen-9", 404}, // a model that does not exist comes before the scope
	} {
		token := w.mint(studio, credential.Scope{Models: []string{c.allowed}})
		if a := w.post(c.called, token); a.status != c.status {
			t.Errorf("a token of %s calls %s: %d %s, want %d", c.allowed, c.called, a.status, a.body, c.status)
		}
	}
}

// A request's Origin must be among a token's origins, where there is one.
func TestATokenIsBoundToItsOrigins(t *testing.T) {
	w := newWorld(t, setup{})
	id := w.submit(studio)
	token := w.mint(studio, credential.Scope{Origins: []string{"https://app.example.com", "http://LOCALHOST:80"}})
	for origin, status := range map[string]int{
		"": 200, "https://app.example.com": 200, "http://localhost": 200,
		"https://app.example.com:8443": 403, "http://app.example.com": 403, "https://example.com": 403,
		"https://app.example.com.evil.com": 403, "null": 403,
	} {
		var header []string
		if origin != "" {
			header = []string{"Origin: " + origin}
		}
		if a := w.get("/v1/jobs/"+id, token, header...); a.status != status {
			t.Errorf("from %q: %d %s, want %d", origin, a.status, a.body, status)
		}
	}
}

// A token works until it expires, to the millisecond, also when it was used, and
// so remembered, a moment before.
func TestATokenEndsWhenItExpires(t *testing.T) {
	w := newWorld(t, setup{})
	id := w.submit(studio)
	token := w.mint(studio, credential.Scope{})
	if a := w.get("/v1/jobs/"+id, token); a.status != 200 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	w.later.Store(int64(time.Hour))
	if a := w.get("/v1/jobs/"+id, token); a.status != 401 || a.detail() != "The client token has expired." {
		t.Errorf("%d %s", a.status, a.body)
	}
}
