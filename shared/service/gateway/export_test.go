package gateway

import (
	"context"
	"time"
)

func (g *Gateway) BodiesWaiting() int {
	g.bodies.mu.Lock()
	defer g.bodies.mu.Unlock()
	return g.bodies.waiting
}

// Decompresses reports whether the account's turn to decompress a large body is taken.
func (g *Gateway) Decompresses(account string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if !g.bodies.decoders.Take(ctx, account) {
		return true
	}
	g.bodies.decoders.Release(account)
	return false
}

func (g *Gateway) HoldBody(account string, bytes int64) bool {
	r := &reservation{memory: g.bodies, account: account}
	return r.acquire(context.Background(), bytes) == nil
}
