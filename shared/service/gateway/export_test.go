package gateway

import "context"

// BodiesWaiting returns the number of requests that wait for memory.
func (g *Gateway) BodiesWaiting() int {
	g.bodies.mu.Lock()
	defer g.bodies.mu.Unlock()
	return g.bodies.waiting
}

// HoldBody holds memory as an account's body does, and reports whether the account got it.
func (g *Gateway) HoldBody(account string, bytes int64) bool {
	r := &reservation{memory: g.bodies, account: account}
	return r.acquire(context.Background(), bytes) == nil
}
