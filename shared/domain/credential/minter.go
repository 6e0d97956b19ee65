package credential

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"time"
)

type TokenRequest struct {
	Scope    Scope
	Metadata json.RawMessage
	Lifetime time.Duration
}

type Minter struct {
	Store  TokenStore
	Random io.Reader // must be cryptographically secure
	Now    func() time.Time
	// Secret returns the secret from which the signing keys are derived. It should cache its result.
	Secret func(context.Context) ([]byte, error)
}

// Mint issues a token for the key. It does not store the secret that it returns.
func (m *Minter) Mint(ctx context.Context, key Key, request TokenRequest) (Issued, Token, error) {
	signer, err := m.signer(ctx, m.period())
	if err != nil {
		return Issued{}, Token{}, err
	}
	issued, token, err := NewToken(m.Random, signer, key, request, m.Now())
	if err != nil {
		return Issued{}, Token{}, err
	}
	if err := m.Store.CreateToken(ctx, token); err != nil {
		return Issued{}, Token{}, fmt.Errorf("credential: store a token: %w", err)
	}
	return issued, token, nil
}

const (
	sweepEvery = time.Minute
	// keptExpired is how long an expired token is kept, so that it is distinguished from an unknown token.
	keptExpired = time.Hour
)

// TokenSweeper deletes expired tokens on one machine. In AWS, the table's TTL does this.
type TokenSweeper struct {
	Store TokenRetention
	Now   func() time.Time
	// Settled reports whether the clock can be trusted for expiry. While it cannot, the sweeper deletes nothing. nil
	// means that it always can.
	Settled func() bool
	Logger  *slog.Logger
}

func (s *TokenSweeper) Run(ctx context.Context) {
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if s.Settled != nil && !s.Settled() {
			continue
		}
		if err := s.Store.DeleteTokens(ctx, s.Now().Add(-keptExpired)); err != nil && ctx.Err() == nil {
			s.Logger.Error("cannot delete expired tokens", "error", err)
		}
	}
}
