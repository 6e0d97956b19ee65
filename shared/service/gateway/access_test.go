package gateway_test

import (
	"crypto/rand"
	"net/http"
	"slices"
	"strings"
	"testing"

	"cutroom/shared/domain/audit"
	"cutroom/shared/domain/credential"
	"cutroom/shared/testkit/access"
)

const everyRoute = `
  - {id: small, routes: [chat, completions, embeddings, rerank, score], context_length: 8192, max_output_length: 1000, upstreams: [{name: first, url: URL0, model: weights}]}
`

// See docs/contract/auth.md#permissions.
func TestEveryRouteChecksEveryCredential(t *testing.T) {
	w := newWorld(t, setup{batches: true, responses: responses(t), rows: everyRoute + `
  - {id: other, routes: [chat], context_length: 8, max_output_length: 8, upstreams: [{url: "http://127.0.0.1:1"}]}
`})
	const origin = "https://app.example.com"
	token := w.token(credential.Scope{Models: []string{"small"}, Origins: []string{origin}})
	elsewhere := w.token(credential.Scope{Origins: []string{"https://other.example.com"}})
	others := w.token(credential.Scope{Models: []string{"other"}})
	for _, call := range append(access.Gateway("small"), access.Batches()...) {
		method, _, _ := strings.Cut(call.Endpoint, " ")
		for _, c := range []struct {
			name, key string
			want      int
		}{
			{"no key", "", http.StatusUnauthorized},
			{"an unknown key", "ck_0000000000", http.StatusUnauthorized},
			{"a key", studio, call.Key},
			{"another account's key", rival, call.OtherKey},
			{"a token", token, call.Token},
			{"a token for another origin", elsewhere, call.TokenForOtherOrigin},
			{"a token for other models", others, call.TokenForOtherModels},
		} {
			a := w.do(w.request(t.Context(), method, call.Path, c.key, strings.NewReader(call.Body),
				"Content-Type: "+call.ContentType, "Origin: "+origin))
			if a.status != c.want {
				t.Errorf("%s with %s: %d %s, want %d", call.Endpoint, c.name, a.status, a.body, c.want)
			}
			if a.status >= 400 {
				checkDialectError(t, call.Path, a)
			}
			// Anthropic's libraries send the credential in this header.
			want := http.StatusUnauthorized
			if strings.HasPrefix(call.Path, "/v1/messages") || strings.HasPrefix(call.Path, "/v1/models") {
				want = c.want
			}
			a = w.do(w.request(t.Context(), method, call.Path, "", strings.NewReader(call.Body),
				"Content-Type: "+call.ContentType, "Origin: "+origin, "X-Api-Key: "+c.key))
			if a.status != want {
				t.Errorf("%s with %s as x-api-key: %d %s, want %d", call.Endpoint, c.name, a.status, a.body, want)
			}
		}
	}
}

func (w *world) limitedKey(change func(*credential.Key)) (secret string) {
	w.t.Helper()
	secret, err := credential.NewSecret(rand.Reader)
	must(w.t, err)
	key, err := credential.NewKey(secret, "studio", credential.DefaultTier, "", w.now())
	must(w.t, err)
	change(&key)
	must(w.t, keys.CreateKey(w.t.Context(), audit.Operator(key.CreatedAt), key))
	return secret
}

// See docs/contract/auth.md#limits-of-a-key.
func TestEveryRouteChecksKeyLimits(t *testing.T) {
	w := newWorld(t, setup{batches: true, responses: responses(t), rows: everyRoute + `
  - {id: other, routes: [chat], context_length: 8, max_output_length: 8, upstreams: [{url: "http://127.0.0.1:1"}]}
`})
	otherModel := w.limitedKey(func(key *credential.Key) { key.Limits.Models = []string{"other"} })
	expired := w.limitedKey(func(key *credential.Key) { key.ExpiresAt = w.now() })
	for _, call := range append(access.Gateway("small"), access.Batches()...) {
		method, _, _ := strings.Cut(call.Endpoint, " ")
		group := credential.RouteGroup(call.Group())
		of := w.limitedKey(func(key *credential.Key) { key.Limits.Routes = []credential.RouteGroup{group} })
		without := w.limitedKey(func(key *credential.Key) {
			key.Limits.Routes = slices.DeleteFunc(credential.RouteGroups(),
				func(g credential.RouteGroup) bool { return g == group })
		})
		forOther := call.Key
		if call.OfModel() {
			forOther = http.StatusForbidden
		}
		for _, c := range []struct {
			name, key string
			want      int
			code      string
		}{
			{"a key of the group", of, call.Key, ""},
			{"a key of all other groups", without, http.StatusForbidden, `"code":"route_not_allowed"`},
			{"a key for another model", otherModel, forOther, ""},
			{"an expired key", expired, http.StatusUnauthorized, ""},
		} {
			a := w.do(w.request(t.Context(), method, call.Path, c.key, strings.NewReader(call.Body),
				"Content-Type: "+call.ContentType))
			if a.status != c.want {
				t.Errorf("%s with %s: %d %s, want %d", call.Endpoint, c.name, a.status, a.body, c.want)
			}
			if a.status >= 400 {
				checkDialectError(t, call.Path, a)
			}
			if !strings.HasPrefix(call.Path, "/v1/messages") && !strings.Contains(a.body, c.code) {
				t.Errorf("%s with %s: %s, want %s", call.Endpoint, c.name, a.body, c.code)
			}
		}
	}
}

func TestLimitedKeyUsesOnlyItsModels(t *testing.T) {
	w := newWorld(t, setup{rows: everyRoute + `
  - {id: other, routes: [chat], context_length: 8, max_output_length: 8, fallbacks: [small], upstreams: [{url: "http://127.0.0.1:1"}]}
`})
	key := w.limitedKey(func(key *credential.Key) { key.Limits.Models = []string{"other"} })
	list := w.do(w.request(t.Context(), http.MethodGet, "/v1/models", key, nil))
	if list.status != http.StatusOK || !strings.Contains(list.body, `"id":"other"`) ||
		strings.Contains(list.body, `"id":"small"`) {
		t.Errorf("list: %d %s", list.status, list.body)
	}
	one := w.do(w.request(t.Context(), http.MethodGet, "/v1/models/small", key, nil))
	if one.status != http.StatusForbidden || !strings.Contains(one.body, `"code":"model_not_allowed"`) {
		t.Errorf("the model: %d %s", one.status, one.body)
	}
	// The call does not fall back to a model that the key may not use.
	a := w.do(w.request(t.Context(), http.MethodPost, "/v1/chat/completions", key,
		strings.NewReader(`{"model": "other", "messages": [{"role": "user", "content": "x"}]}`)))
	if a.status < 500 {
		t.Errorf("a model whose server is down: %d %s", a.status, a.body)
	}
}
