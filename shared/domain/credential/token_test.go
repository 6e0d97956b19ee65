package credential_test

import (
	"context"
	"testing"

	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/fault"
)

type tokens struct {
	keys
	byHash  map[credential.Hash]credential.Token
	failure error
}

func (s *tokens) CreateToken(_ context.Context, token credential.Token) error {
	s.byHash[token.Hash] = token
	return nil
}

func (s *tokens) FindToken(_ context.Context, hash credential.Hash) (credential.Token, error) {
	s.reads++
	if s.failure != nil {
		return credential.Token{}, s.failure
	}
	token, ok := s.byHash[hash]
	if !ok {
		return token, fault.New(fault.NotFound, "no such token")
	}
	token.Key = s.keys.byHash[token.Key.Hash]
	return token, nil
}

func TestScopeLimitsModelsAndOrigins(t *testing.T) {
	if everything := (credential.Scope{}); !everything.AllowsModel("any") ||
		!everything.AllowsOrigin("https://any.example") {
		t.Error("the zero scope does not allow everything")
	}
	scope := credential.Scope{Models: []string{"gen-latest"}, Origins: []string{"https://App.example",
		"http://localhost:80", "https://a.example:443"}}
	if !scope.AllowsModel("gen-2.5", "gen-latest") || scope.AllowsModel("gen-2.1") {
		t.Error("a scope does not allow exactly the models with one of its names")
	}
	for origin, allowed := range map[string]bool{
		"": true, "https://app.example": true, "http://localhost": true, "https://a.example": true,
		"http://app.example": false, "https://app.example:8443": false, "http://localhost:8080": false,
		"https://a.example:80": false, "null": false,
	} {
		if scope.AllowsOrigin(origin) != allowed {
			t.Errorf("origin %q: got allowed=%v, want %v", origin, !allowed, allowed)
		}
	}
}
