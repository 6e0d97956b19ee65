package gateway_test

import (
	"net/http"
	"strings"
	"testing"

	"cutroom/shared/client/access"
	"cutroom/shared/domain/credential"
)

// Who may do what (docs/contract/auth.md#who-may-do-what): every route that requires a
// credential, called with each kind of credential.
func TestEveryRouteWithEveryCredential(t *testing.T) {
	w := newWorld(t, setup{rows: oneRow + `
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
		}
	}
}
