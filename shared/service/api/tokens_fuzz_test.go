package api

import (
	"encoding/json"
	"testing"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/credential"
)

// See docs/contract/auth.md#client-tokens. All problems can be encoded as JSON.
func FuzzTokenRequest(f *testing.F) {
	for _, seed := range []string{
		``, `null`, `{}`, `[]`, `{"expiresIn": 60}`, `{"expiresIn": 1e999}`, `{"expiresIn": "60"}`,
		`{"expiresIn": 59.99999999999999999}`,
		`{"allowedModels": ["gen-latest"], "allowedOrigins": ["https://a.example:8443"]}`,
		`{"allowedModels": [null, 1, {}], "allowedOrigins": [[], "x"]}`,
		`{"constraints": {"realtime": {"maxSessionDuration": 3}}, "metadata": {"a": [1, {"b": null}]}}`,
		`{"constraints": {"realtime": 1}, "metadata": 1}`, "{\"metadata\": {\"k\": \"\xff\"}}", `{"expiresIn": 60`,
		`{"expiresIn": -0.0}`,
	} {
		f.Add([]byte(seed))
	}
	known, err := catalog.Default("gen")
	if err != nil {
		f.Fatal(err)
	}
	s := &service{Config: Config{Catalog: known}}
	f.Fuzz(func(t *testing.T, text []byte) {
		sent, err := parseJSON(text)
		found, refused := err.(problems)
		if err != nil && !refused {
			t.Fatalf("%q: an error without problems: %v", text, err)
		}
		if err == nil {
			var request credential.TokenRequest
			request, found = s.tokenRequest(sent)
			if len(found) == 0 {
				checkTokenRequest(t, request)
				return
			}
		}
		for _, p := range found {
			if len(p.Location) == 0 || p.Location[0] != "body" || p.Message == "" || p.Type == "" || p.Context == nil {
				t.Errorf("%q: the problem %+v", text, p)
			}
		}
		if _, err := json.Marshal(found); err != nil || len(found) == 0 {
			t.Errorf("%q: the problems %v: %v", text, found, err)
		}
	})
}

func checkTokenRequest(t *testing.T, request credential.TokenRequest) {
	if request.Lifetime < credential.MinTokenLifetime || request.Lifetime > credential.MaxTokenLifetime {
		t.Errorf("it lives for %v", request.Lifetime)
	}
	scope := request.Scope
	if len(scope.Models) > credential.MaxTokenModels || len(scope.Origins) > credential.MaxTokenOrigins ||
		scope.MaxSession < 0 {
		t.Errorf("its scope is %+v", scope)
	}
	for _, origin := range scope.Origins {
		if !credential.IsOrigin(origin) {
			t.Errorf("%q is not an origin", origin)
		}
	}
	if len(request.Metadata) > credential.MaxTokenMetadata || request.Metadata != nil && !json.Valid(request.Metadata) {
		t.Errorf("its metadata is %q", request.Metadata)
	}
}
