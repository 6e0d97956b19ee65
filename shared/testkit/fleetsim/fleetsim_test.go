package fleetsim_test

import (
	"math"
	"testing"

	"cutroom/shared/testkit/fleetsim"
)

// bound is how many times the mean of calls a server may have, for the router
// that knows everything as for the gateway.
const bound = 1.3

func gateway(t *testing.T, c fleetsim.Config, affinity bool) fleetsim.Router {
	t.Helper()
	g, err := fleetsim.NewGateway(c.Servers, affinity, c.Seed)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// Conversations find their cache about as often as they would if the gateway saw
// all caches, and no server has much more to do than another.
func TestAffinity(t *testing.T) {
	for _, c := range []fleetsim.Config{
		{Servers: 8, CacheTokens: 200_000, Calls: 8000, Concurrent: 240, Seed: 1},
		{Servers: 8, CacheTokens: 100_000, Calls: 8000, Concurrent: 48, Seed: 2},
	} {
		ideal, ours := fleetsim.Run(c, fleetsim.Ideal{Bound: bound}), fleetsim.Run(c, gateway(t, c, true))
		random := fleetsim.Run(c, gateway(t, c, false))
		t.Logf("%d at once: ideal %+v, affinity %+v, random %+v", c.Concurrent, ideal, ours, random)
		if ours.Hits < ideal.Hits-0.03 || ours.Hits < random.Hits+0.1 {
			t.Errorf("%.3f are hits: the ideal is %.3f, without affinity it is %.3f", ours.Hits, ideal.Hits, random.Hits)
		}
		if ours.BusiestCalls > bound || ours.BusiestTime > bound {
			t.Errorf("the busiest server has %.2f times the mean of calls, %.2f of time", ours.BusiestCalls, ours.BusiestTime)
		}
	}
}

// A run is the same each time.
func TestRepetition(t *testing.T) {
	c := fleetsim.Config{Servers: 8, CacheTokens: 100_000, Calls: 1000, Concurrent: 48, Seed: 4}
	once, again := fleetsim.Run(c, gateway(t, c, true)), fleetsim.Run(c, gateway(t, c, true))
	if once != again {
		t.Errorf("it is %+v, and again %+v", once, again)
	}
}

// Calls that all begin alike are spread all the same.
func TestOneBeginning(t *testing.T) {
	c := fleetsim.Config{Servers: 8, CacheTokens: 200_000, Calls: 4000, Concurrent: 240, Alike: 0.6, Seed: 3}
	ours := fleetsim.Run(c, gateway(t, c, true))
	t.Logf("%+v", ours)
	if ours.BusiestCalls > bound+0.1 || ours.BusiestTime > bound+0.1 {
		t.Errorf("the busiest server has %.2f times the mean of calls, %.2f of time", ours.BusiestCalls, ours.BusiestTime)
	}
}

// A server that leaves takes its own conversations with it, and no others move.
func TestLeave(t *testing.T) {
	there, elsewhere, err := fleetsim.Leave(8)
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(there-1.0/8) > 0.02 || elsewhere != 0 {
		t.Errorf("%.3f of the conversations were there, and %.3f others moved", there, elsewhere)
	}
}
