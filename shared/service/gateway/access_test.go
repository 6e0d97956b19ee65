package gateway_test

import (
	"net/http"
	"strings"
	"testing"

	"cutroom/shared/client/access"
	"cutroom/shared/domain/credential"
)

// everyRoute is a model that serves every route.
const everyRoute = `
  - {id: small, routes: [chat, completions, embeddings, rerank, score], context_length: 8192, max_output_length: 1000, upstreams: [{name: first, url: URL0, model: weights}]}
`

// Who may do what (docs/contract/auth.md#who-may-do-what): every route that requires a
// credential, called with each kind of credential.
func TestEveryRouteWithEveryCredential(t *testing.T) {
	w := newWorld(t, setup{rows: everyRoute + `
  - {id: other, routes: [chat], context_length: 8, max_output_length: 8, upstreams: [{url: "http://127.0.0.1:1"}]}
`})
	const origin = "https://app.example.com"
	token := w.token(credential.Scope{Models: []string{"small"}, Origins: []string{origin}})
	elsewhere := w.token(credential.Scope{Origins: []string{"https://other.example.com"}})
	others := w.token(credential.Scope{Models: []string{"other"}})
	for _, call := range access.Gateway("small") {
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
			// Messages take the credential in a header of its own too, and other routes do not.
			want := http.StatusUnauthorized
			if strings.HasPrefix(call.Path, "/v1/messages") {
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
