package credential_test

import (
	"context"
	"crypto/rand"
	"strings"
	"testing"
	"time"

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

func TestTokenWorksUntilExpiryOrRevocation(t *testing.T) {
	ctx, now := t.Context(), time.Now()
	clock := func() time.Time { return now }
	tiers := credential.DefaultTiers()
	key, err := credential.NewKey("ck_development", "acme", "default", "", now)
	if err != nil {
		t.Fatal(err)
	}
	store := &tokens{keys{byHash: map[credential.Hash]credential.Key{key.Hash: key}},
		map[credential.Hash]credential.Token{}, nil}
	minter := &credential.Minter{Store: store, Random: rand.Reader, Now: clock}
	authenticator := credential.NewAuthenticator(store, tiers, clock)
	scope := credential.Scope{Models: []string{"gen-2.5"}}
	mint := func(lifetime time.Duration) string {
		issued, _, err := minter.Mint(ctx, key, credential.TokenRequest{Scope: scope, Lifetime: lifetime})
		if err != nil {
			t.Fatal(err)
		}
		return issued.Secret
	}

	secret := mint(3 * time.Second)
	if !strings.HasPrefix(secret, "ek_") || secret == mint(3*time.Second) {
		t.Errorf("the token is %q", secret)
	}
	who, err := authenticator.Authenticate(ctx, secret)
	if err != nil || who.Account() != "acme" || who.Tier.Name != "default" || who.Scope().AllowsModel("gen-2.1") ||
		!who.Scope().AllowsModel("gen-2.5") {
		t.Fatalf("got %+v, %v", who, err)
	}
	// The token is read once, and does not work past its expiry.
	if _, err := authenticator.Authenticate(ctx, secret); err != nil || store.reads != 1 {
		t.Errorf("%d reads, %v", store.reads, err)
	}
	now = now.Add(3 * time.Second)
	if _, err := authenticator.Authenticate(ctx, secret); !fault.Is(err, fault.Unauthorized) {
		t.Errorf("an expired token: %v", err)
	}

	// Revoking a key invalidates its tokens.
	secret = mint(time.Hour)
	if _, err := authenticator.Authenticate(ctx, secret); err != nil {
		t.Fatal(err)
	}
	key.RevokedAt = now
	store.keys.byHash[key.Hash] = key
	now = now.Add(credential.CacheAge)
	if _, err := authenticator.Authenticate(ctx, secret); !fault.Is(err, fault.Unauthorized) {
		t.Errorf("a token of a revoked key: %v", err)
	}
	if _, err := authenticator.Authenticate(ctx, "ek_0123456789"); !fault.Is(err, fault.Unauthorized) {
		t.Errorf("an unknown token: %v", err)
	}
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
