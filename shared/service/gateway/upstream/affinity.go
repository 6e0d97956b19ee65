package upstream

import (
	"math"
	"time"

	"github.com/cespare/xxhash/v2"
)

const (
	// boundedLoad is how many times its share of all calls an upstream may have on average before
	// calls with affinity to it go to the next one.
	boundedLoad = 1.3
	// evenLoad is from how many times its share an upstream's weight falls, by the power yielding.
	// The calls that then go elsewhere stay the same from call to call, and find their cache there.
	evenLoad = 1.05
	yielding = 4
	// loadTime is about the time over which the average is taken: long enough that chance sends few
	// calls away from their cache.
	loadTime = 2 * time.Minute
)

// burst limits an upstream's calls at one moment, given its share: the usual variation by chance.
func burst(share float64) float64 { return boundedLoad*share + 2*math.Sqrt(share) + 1 }

// average is a moving average in which older values count less.
type average struct {
	value float64
	noted time.Time
}

// at returns the average now, if the number has not changed since the last note.
func (a *average) at(now time.Time, number int) float64 {
	kept := math.Exp(-max(now.Sub(a.noted), 0).Seconds() / loadTime.Seconds())
	return float64(number) + (a.value-float64(number))*kept
}

// note records that the number has been the same until now.
func (a *average) note(now time.Time, number int) {
	a.value, a.noted = a.at(now, number), now
}

// candidate is a member that may be called now.
type candidate struct {
	member
	load load
}

// seedOf returns an upstream's seed. It is the same on every instance, and does not depend on other
// upstreams.
func seedOf(address, model string) uint64 {
	return xxhash.Sum64String(address + "\x00" + model)
}

// nearest returns the candidate that an affinity prefers, by rendezvous hashing with weights and bounded
// loads: every upstream draws a number by the affinity, and the largest one wins. When an upstream goes,
// only its calls move. An upstream with more than its share draws lower numbers, so that some of its calls
// move. One with far more draws none, because most calls may have one common beginning.
func nearest(candidates []candidate, affinity uint64) member {
	weights, calls, usual := 0.0, 1.0, 0.0
	for _, c := range candidates {
		weights += float64(c.weight)
		calls += float64(c.load.inFlight)
		usual += c.load.usual
	}
	best, greatest := candidates[0].member, math.Inf(-1)
	for _, c := range candidates {
		weight := float64(c.weight)
		if c.load.inFlight > 0 && usual > 0 {
			share := weight / weights
			over := c.load.usual / (usual * share)
			if over > boundedLoad || float64(c.load.inFlight) >= burst(calls*share) {
				continue
			}
			weight *= math.Pow(max(over/evenLoad, 1), -yielding)
		}
		if drawn := draw(affinity, c.upstream.seed, weight); drawn > greatest {
			best, greatest = c.member, drawn
		}
	}
	return best
}

// draw returns an upstream's number. The chance to draw the largest is by weight.
func draw(affinity, seed uint64, weight float64) float64 {
	// The finalizer of MurmurHash3: every bit of the sum affects all bits.
	h := affinity ^ seed
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	h ^= h >> 33
	uniform := (float64(h>>11) + 0.5) / (1 << 53)
	return -weight / math.Log(uniform)
}
