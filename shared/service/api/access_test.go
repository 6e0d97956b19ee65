package api_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"cutroom/shared/domain/audit"
	"cutroom/shared/domain/credential"
	"cutroom/shared/service/api"
	"cutroom/shared/testkit/access"
)

func (w *world) mint(key string, scope credential.Scope) string { return w.issue(key, scope).Secret }

func (w *world) issue(key string, scope credential.Scope) credential.Issued {
	w.t.Helper()
	found, err := w.keys.FindKey(w.t.Context(), credential.HashOf(key))
	if err != nil {
		w.t.Fatal(err)
	}
	issued, _, err := w.minter().Mint(w.t.Context(), found, credential.TokenRequest{Scope: scope, Lifetime: time.Hour})
	if err != nil {
		w.t.Fatal(err)
	}
	return issued
}

func (w *world) minter() *credential.Minter {
	return &credential.Minter{Store: w.keys, Random: rand.Reader, Now: w.now, Secret: func(context.Context) ([]byte, error) {
		return []byte("the secret of the signing keys"), nil
	}}
}

func scoped(model string) credential.Scope { return credential.Scope{Models: []string{model}} }

func (w *world) newKey(account string) string { return w.makeKey(account, false) }

func (w *world) newAdmin(account string) string { return w.makeKey(account, true) }

func (w *world) makeKey(account string, admin bool) string {
	w.t.Helper()
	return w.makeKeyOf(account, func(key *credential.Key) { key.Admin = admin })
}

func (w *world) limitedAdmin(account string, limits credential.Limits) string {
	w.t.Helper()
	return w.makeKeyOf(account, func(key *credential.Key) { key.Admin, key.Limits = true, limits })
}

func (w *world) expiringKey(account string, lifetime time.Duration) string {
	w.t.Helper()
	return w.makeKeyOf(account, func(key *credential.Key) { key.Admin, key.ExpiresAt = true, key.CreatedAt.Add(lifetime) })
}

func (w *world) makeKeyOf(account string, change func(*credential.Key)) string {
	w.t.Helper()
	secret, err := credential.NewSecret(rand.Reader)
	if err != nil {
		w.t.Fatal(err)
	}
	key, err := credential.NewKey(secret, account, credential.DefaultTier, "", w.now())
	if err == nil {
		change(&key)
		err = w.keys.CreateKey(w.t.Context(), audit.Operator(key.CreatedAt), key)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return secret
}

func idOf(secret string) string { return credential.KeyID(credential.HashOf(secret)) }

func (w *world) revoke(secret string) {
	w.t.Helper()
	if _, err := w.keys.RevokeKey(w.t.Context(), audit.Operator(w.now()), idOf(secret)); err != nil {
		w.t.Fatal(err)
	}
}

// This test calls every route that requires a credential with every kind of credential: see
// docs/contract/auth.md#permissions.
func TestEveryRouteChecksEveryCredential(t *testing.T) {
	const origin = "https://app.example.com"
	w := newWorld(t, setup{})
	expired, expiredKey := w.issue(studio, credential.Scope{}), w.expiringKey("studio", time.Minute)
	orphanOfTime := w.issue(expiredKey, credential.Scope{})
	w.later.Store(int64(time.Hour)) // lets it expire
	revoked, parent := w.newKey("studio"), w.newKey("studio")
	orphan := w.issue(parent, credential.Scope{})
	w.revoke(revoked)
	w.revoke(parent)
	key := func(secret string) credential.Issued { return credential.Issued{Secret: secret} }
	unauthorized := func(access.Call) int { return http.StatusUnauthorized }
	// The order matters, because the admin key gets 404 once another key has deleted a file.
	credentials := []struct {
		name string
		credential.Issued
		want func(access.Call) int
	}{
		{"none", key(""), unauthorized},
		{"garbage", credential.Issued{Secret: "hello", JWT: "eyJhbGciOiJub25lIn0.e30."}, unauthorized},
		{"unknown key", key("ck_0123456789"), unauthorized},
		{"unknown token", key("ek_0123456789"), unauthorized},
		{"revoked key", key(revoked), unauthorized},
		{"expired token", expired, unauthorized},
		{"token of a revoked key", orphan, unauthorized},
		{"expired key", key(expiredKey), unauthorized},
		{"token of an expired key", orphanOfTime, unauthorized},
		{"key of another account", key(rival), func(s access.Call) int { return s.OtherKey }},
		{"token of another account", w.issue(rival, credential.Scope{}), func(s access.Call) int { return s.OtherToken }},
		{"token for other models", w.issue(studio, credential.Scope{Models: []string{"gen-2.5"}}),
			func(s access.Call) int { return s.TokenForOtherModels }},
		{"token for another origin", w.issue(studio, credential.Scope{Origins: []string{"https://other.example.com"}}),
			func(s access.Call) int { return s.TokenForOtherOrigin }},
		{"key", key(studio), func(s access.Call) int { return s.Key }},
		{"token", w.issue(studio, credential.Scope{
			Models: []string{"gen-pro-t2v", "gen-image-latest"}, Origins: []string{origin},
		}), func(s access.Call) int { return s.Token }},
		{"admin key", key(w.newAdmin("studio")), func(s access.Call) int { return s.AdminKey }},
		{"admin key of another account", key(w.newAdmin("rival")), func(s access.Call) int { return s.OtherAdminKey }},
		{"token of an admin key", w.issue(w.newAdmin("studio"), credential.Scope{}),
			func(s access.Call) int { return s.AdminToken }},
	}

	routes := w.protectedRoutes()
	for _, route := range routes {
		method, _, _ := strings.Cut(route.Endpoint, " ")
		for _, credential := range credentials {
			for i, secret := range []string{credential.Secret, credential.JWT} {
				name := route.Endpoint + " with " + credential.name
				if i == 1 {
					if secret == "" {
						continue // only tokens have a JWT
					}
					name += ", as JWT"
				}
				t.Run(name, func(t *testing.T) {
					a := w.request(method, route.Path, secret, strings.NewReader(route.Body),
						"Content-Type: "+route.ContentType, "Origin: "+origin)
					if want := credential.want(route); a.status != want {
						t.Errorf("%d %s, want %d", a.status, a.body, want)
					}
					if a.status >= 400 && a.status != http.StatusUnprocessableEntity && a.detail() == "" {
						t.Errorf("the error is %s", a.body)
					}
					challenge := a.header.Get("WWW-Authenticate")
					if (challenge != "") != (a.status == http.StatusUnauthorized) {
						t.Errorf("%d with WWW-Authenticate %q", a.status, challenge)
					}
				})
			}
		}
	}
	for _, endpoint := range api.Endpoints(api.Config{}) {
		name := endpoint.Method + " " + endpoint.Path
		if !endpoint.Public && !slices.ContainsFunc(routes, func(r access.Call) bool { return r.Endpoint == name }) {
			t.Errorf("%s is not in the table", name)
		}
	}
}

// This test calls every route with keys for its route group, for all other groups and for another
// model, and with client tokens of these keys: see docs/contract/auth.md#limits-of-a-key.
func TestEveryRouteChecksLimitsOfKeys(t *testing.T) {
	w := newWorld(t, setup{})
	of, without := map[string]string{}, map[string]string{}
	for _, group := range credential.RouteGroups() {
		of[string(group)] = w.limitedAdmin("studio", credential.Limits{Routes: []credential.RouteGroup{group}})
		others := slices.DeleteFunc(credential.RouteGroups(), func(g credential.RouteGroup) bool { return g == group })
		without[string(group)] = w.limitedAdmin("studio", credential.Limits{Routes: others})
	}
	otherModel := w.limitedAdmin("studio", credential.Limits{Models: []string{"gen-2.5"}})
	aliases := w.limitedAdmin("studio", credential.Limits{Models: []string{"gen-pro-t2v", "gen-image-latest"}})
	token := map[string]string{}
	for _, key := range slices.Concat(slices.Collect(maps.Values(of)), slices.Collect(maps.Values(without)),
		[]string{otherModel, aliases}) {
		token[key] = w.mint(key, credential.Scope{})
	}
	for _, route := range w.protectedRoutes() {
		method, _, _ := strings.Cut(route.Endpoint, " ")
		forbidden := func(allowed int) int {
			if route.OfModel() {
				return http.StatusForbidden
			}
			return allowed
		}
		group, first := route.Group(), route.Key
		if group == "keys" {
			first = route.AdminKey
		}
		for _, c := range []struct {
			name, secret string
			want         int
		}{
			{"a token of a key of all other groups", token[without[group]], http.StatusForbidden},
			{"a key of all other groups", without[group], http.StatusForbidden},
			{"a token of a key for another model", token[otherModel], forbidden(route.AdminToken)},
			{"a token of a key of the group", token[of[group]], route.AdminToken},
			{"a token of a key for the model", token[aliases], route.AdminToken},
			{"a key of the group", of[group], first},
			{"a key for another model", otherModel, forbidden(route.AdminKey)},
			{"a key for the model", aliases, route.AdminKey},
		} {
			if c.want == http.StatusNoContent && strings.HasPrefix(route.Path, "/v1/keys/") {
				c.want = http.StatusForbidden // the key to revoke has more permissions
			}
			a := w.request(method, route.Path, c.secret, strings.NewReader(route.Body), "Content-Type: "+route.ContentType)
			if a.status != c.want {
				t.Errorf("%s with %s: %d %s, want %d", route.Endpoint, c.name, a.status, a.body, c.want)
			}
		}
	}
}

func (w *world) protectedRoutes() []access.Call {
	done := w.completed("the bytes", "video/mp4")
	w.photograph(done, "small", "")
	cancelled := w.submit(studio)
	store := func() (id, md5 string) {
		body, contentType := multiform(upload("file", "some bytes"))
		a := w.request("POST", "/v1/files", studio, strings.NewReader(body), "Content-Type: "+contentType)
		var file struct{ ID, MD5 string }
		if err := json.Unmarshal([]byte(a.body), &file); err != nil {
			w.t.Fatalf("%v: %s", err, a.body)
		}
		return file.ID, file.MD5
	}
	stored, md5 := store()
	deleted, _ := store()
	return access.Media(access.Fixtures{
		Video: "gen-pro-t2v", Image: "gen-image-2", Ended: done, Cancelled: cancelled, Stored: stored, MD5: md5,
		Deleted: deleted, KeyID: idOf(w.newKey("studio")),
	})
}

// A token or key for an alias reaches the model, and one for the model reaches its aliases.
func TestTokenAndKeyAcceptAnyNameOfTheirModels(t *testing.T) {
	w := newWorld(t, setup{})
	for _, c := range []struct {
		allowed, called string
		status          int
	}{
		{"gen-2.5", "gen-latest", 422},
		{"gen-latest", "gen-2.5", 422},
		{"gen-vton-2", "gen-vton-3", 422}, // two aliases of one model
		{"gen-2.1", "gen-2.5", 403},
		{"gen-2.1", "gen-9", 404}, // an unknown model is reported before the scope is checked
	} {
		for kind, secret := range map[string]string{
			"client token": w.mint(studio, credential.Scope{Models: []string{c.allowed}}),
			"API key":      w.limitedAdmin("studio", credential.Limits{Models: []string{c.allowed}}),
		} {
			a := w.post(c.called, secret)
			if a.status != c.status || a.status == 403 && a.detail() != "The "+kind+" does not allow the model "+c.called+"." {
				t.Errorf("a %s for %s calls %s: %d %s, want %d", kind, c.allowed, c.called, a.status, a.body, c.status)
			}
		}
	}
}
