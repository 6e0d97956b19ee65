package main

import (
	"context"
	"fmt"

	"cutroom/shared/testkit/fleetsim"
)

const (
	// affinityServers keep affinityCache tokens each, and have affinityCalls calls
	// of affinityAtOnce conversations at a time.
	affinityServers, affinityCache = 8, 400_000
	affinityCalls, affinityAtOnce  = 20_000, 600
	// The bars: points of cached tokens below the ideal, the busiest server's part
	// of the mean, and what moves besides a server's own conversations.
	affinityHitBar  = 3.0
	affinityLoadBar = 1.3
)

// affinity compares the gateway's choice among model servers with one that sees
// all of their caches, and with chance. The servers are simulated; the choice is
// the gateway's own.
func (b *bench) affinity(context.Context) error {
	c := fleetsim.Config{
		Servers: affinityServers, CacheTokens: affinityCache, Calls: affinityCalls, Concurrent: affinityAtOnce, Seed: 1,
	}
	results := map[bool]fleetsim.Result{}
	for _, affinity := range []bool{true, false} {
		router, err := fleetsim.NewGateway(c.Servers, affinity, c.Seed)
		if err != nil {
			return err
		}
		results[affinity] = fleetsim.Run(c, router)
	}
	ours, random := results[true], results[false]
	ideal := fleetsim.Run(c, fleetsim.Ideal{Bound: affinityLoadBar})
	there, elsewhere, err := fleetsim.Leave(c.Servers)
	if err != nil {
		return err
	}
	below := 100 * (ideal.Hits - ours.Hits)
	b.table.add(row{
		what: fmt.Sprintf("affinity, prompt tokens in the caches of %d servers", c.Servers), measured: percent(ours.Hits),
		floor: percent(ideal.Hits) + " ideal", ratio: fmt.Sprintf("%.1f points", below),
		bar: fmt.Sprintf("%.0f points", affinityHitBar), verdict: verdictOf(below <= affinityHitBar),
	})
	b.table.add(row{
		what: "  chosen at random", measured: percent(random.Hits), floor: percent(ideal.Hits) + " ideal",
		ratio: fmt.Sprintf("%.1f points", 100*(ideal.Hits-random.Hits)), bar: "-", verdict: noBar,
	})
	busiest := max(ours.BusiestCalls, ours.BusiestTime)
	b.table.add(row{
		what: "  busiest server, of calls or their time", measured: fmt.Sprintf("%.2f x", busiest), floor: "the mean",
		ratio: fmt.Sprintf("%.2f x", busiest), bar: fmt.Sprintf("%.1f x", affinityLoadBar),
		verdict: verdictOf(busiest <= affinityLoadBar),
	})
	b.table.add(row{
		what: "  moved when a server leaves, besides its own", measured: percent(elsewhere),
		floor: percent(there) + " its own", ratio: "-", bar: percent(0), verdict: verdictOf(elsewhere == 0),
	})
	return nil
}

func percent(part float64) string { return fmt.Sprintf("%.1f %%", 100*part) }
