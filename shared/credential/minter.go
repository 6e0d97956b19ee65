package credential

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"time"
)

// TokenRequest says what a token shall be.
type TokenRequest struct {
	Scope    Scope
	Metadata json.RawMessage
	Lifetime time.Duration
}

// Minter makes client tokens, and removes those that ended.
type Minter struct {
	Store TokenStore
	// Random must be a cryptographic source.
	Random io.Reader
	Now    func() time.Time
	Logger *slog.Logger
}

// Mint makes a token of the key and gives its secret, which is kept nowhere.
func (m *Minter) Mint(ctx context.Context, key Key, request TokenRequest) (secret string, token Token, err error) {
	secret, token, err = NewToken(m.Random, key, request.Scope, request.Metadata, request.Lifetime, m.Now())
	if err != nil {
		return "", Token{}, err
	}
	if err := m.Store.CreateToken(ctx, token); err != nil {
		return "", Token{}, fmt.Errorf("credential: keep a token: %w", err)
	}
	return secret, token, nil
}

const (
	// sweepEvery is how often ended tokens are removed.
	sweepEvery = time.Minute
	// keptExpired is for how long an expired token is still told from one that
	// never was.
	keptExpired = time.Hour
)

// Sweep removes tokens that ended, until the context ends. In AWS the store's
// TTL does this.
func (m *Minter) Sweep(ctx context.Context) {
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := m.Store.DeleteTokens(ctx, m.Now().Add(-keptExpired)); err != nil && ctx.Err() == nil {
			m.Logger.Error("remove expired tokens", "error", err)
		}
	}
}
