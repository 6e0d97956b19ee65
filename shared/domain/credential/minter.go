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

// Minter makes client tokens.
type Minter struct {
	Store TokenStore
	// Random must be a cryptographic source.
	Random io.Reader
	Now    func() time.Time
}

// Mint makes a token of the key and gives it as its holder sends it, which is kept
// nowhere.
func (m *Minter) Mint(ctx context.Context, key Key, request TokenRequest) (Issued, Token, error) {
	issued, token, err := NewToken(m.Random, key, request, m.Now())
	if err != nil {
		return Issued{}, Token{}, err
	}
	if err := m.Store.CreateToken(ctx, token); err != nil {
		return Issued{}, Token{}, fmt.Errorf("credential: keep a token: %w", err)
	}
	return issued, token, nil
}

const (
	// sweepEvery is how often ended tokens are removed.
	sweepEvery = time.Minute
	// keptExpired is for how long an expired token is still told from one that
	// never was.
	keptExpired = time.Hour
)

// TokenSweeper does on one machine what a store's TTL does in AWS: it removes
// tokens that ended.
type TokenSweeper struct {
	Store TokenRetention
	Now   func() time.Time
	// Settled reports whether the clock can be trusted to say what is old; nothing is
	// deleted while it cannot. Nil says that it always can.
	Settled func() bool
	Logger  *slog.Logger
}

// Run removes tokens until the context ends. A failure is logged and tried again
// at the next turn.
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
			s.Logger.Error("remove expired tokens", "error", err)
		}
	}
}
