package upstream

import (
	"math"
	"time"

	"github.com/cespare/xxhash/v2"
)

const (
	// If the ratio of an upstream's load to its fair share exceeds boundedLoad, calls with affinity to this upstream
	// go to another one. Fair shares are proportional to weights.
	boundedLoad = 1.3
	// evenLoad is the load, relative to the fair share, above which an upstream's weight falls. The weight is divided
	// by the excess ratio to the power of yielding.
	evenLoad = 1.05
	yielding = 4
	// loadTime is the time over which the load is averaged, so that random peaks move few calls
	// away from their cache.
	loadTime = 2 * time.Minute
)

// burst returns the limit on an upstream's concurrent calls, given the expected number of calls.
func burst(expected float64) float64 { return boundedLoad*expected + 2*math.Sqrt(expected) + 1 }

// average is an exponentially weighted moving average.
type average struct {
	value float64
	noted time.Time
}

// at returns the average at the given time, assuming that the number has not changed since the method note was last
// called.
func (a *average) at(now time.Time, number int, over time.Duration) float64 {
	kept := math.Exp(-max(now.Sub(a.noted), 0).Seconds() / over.Seconds())
	return float64(number) + (a.value-float64(number))*kept
}

// note updates the average, assuming that the number has not changed since the previous call.
func (a *average) note(now time.Time, number int, over time.Duration) {
	a.value, a.noted = a.at(now, number, over), now
}

type candidate struct {
	member
	load load
}

// seedOf returns an upstream's hash seed, which is the same on every instance.
func seedOf(address, model string) uint64 { return xxhash.Sum64String(address + "\x00" + model) }

// nearest returns the candidate preferred by an affinity, using rendezvous hashing with weights and bounded loads.
// The upstream that draws the largest number wins, so if an upstream disappears, only its calls move. An upstream
// above its fair load draws lower numbers, and an upstream far above it is skipped, because most calls may have the
// same affinity.
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
			fraction := weight / weights
			over := c.load.usual / (usual * fraction)
			if over > boundedLoad || float64(c.load.inFlight) >= burst(calls*fraction) {
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

// draw returns an upstream's number. The weight is its relative chance of drawing the largest number.
func draw(affinity, seed uint64, weight float64) float64 {
	// The finalizer of MurmurHash3: every input bit affects all output bits.
	h := affinity ^ seed
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	h ^= h >> 33
	uniform := (float64(h>>11) + 0.5) / (1 << 53)
	return -weight / math.Log(uniform)
}
