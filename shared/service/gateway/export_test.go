package gateway

import "context"

func (g *Gateway) BodiesWaiting() int {
	g.bodies.mu.Lock()
	defer g.bodies.mu.Unlock()
	return g.bodies.waiting
}

func (g *Gateway) HoldBody(account string, bytes int64) bool {
	r := &reservation{memory: g.bodies, account: account}
	return r.acquire(context.Background(), bytes) == nil
}
