package gateway

// BodiesWaiting returns the number of requests that wait for memory.
func (g *Gateway) BodiesWaiting() int {
	g.bodies.mu.Lock()
	defer g.bodies.mu.Unlock()
	return g.bodies.waiting
}
