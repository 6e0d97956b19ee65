package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sort"
	"time"
)

// The assumed load; docs/scale.md describes it.
const (
	// videos is the fraction of jobs that are videos. The others are images, which arrive in bursts.
	videos = 0.6
	// imageBurst is the mean number of images in a burst.
	imageBurst = 8
	// mostOfOne is the maximum number of jobs per day from one account. MostOpen is its maximum number of open jobs.
	mostOfOne, MostOpen = 1_000_000, 5000
	// These are the mean numbers of other requests per job.
	completionsEach, sessionsEach, uploadsEach, listsEach = 2.0, 0.02, 0.2, 0.15
	// meanVideoWork and meanImageWork are the mean times that a worker spends on a job.
	meanVideoWork, meanImageWork = 14 * time.Second, 2 * time.Second
)

type account struct {
	name, secret, tier string
	share              float64
	sessions           int
}

// newAccounts returns the accounts of a service. If the parameter `one` is set, there is only one account. Otherwise
// one account has half of the jobs. The others have fractions that follow Zipf's law, but at most mostOfOne jobs a
// day each.
func newAccounts(jobs int, one bool) []*account {
	weights := []float64{1}
	if !one {
		weights[0] = 0
		for i := 1; i < min(max(10, jobs/1000), 1000); i++ {
			weights = append(weights, math.Pow(float64(i), -1.1))
			weights[0] += weights[i]
		}
	}
	share, weight := 1.0, 0.0
	for _, w := range weights {
		weight += w
	}
	var accounts []*account
	for i, w := range weights {
		a := &account{name: fmt.Sprintf("account-%04d", i), secret: fmt.Sprintf("ck_simulated_%06d", i)}
		a.share = min(share*w/weight, mostOfOne/float64(jobs))
		share, weight = share-a.share, weight-w
		accounts = append(accounts, a)
	}
	return accounts
}

func (w *World) choose() *account {
	if w.shares == nil {
		sum := 0.0
		for _, a := range w.accounts {
			sum += a.share
			w.shares = append(w.shares, sum)
		}
	}
	at := sort.SearchFloat64s(w.shares, w.random.Float64()*w.shares[len(w.shares)-1])
	return w.accounts[min(at, len(w.accounts)-1)]
}

const day = 24 * time.Hour

// wave returns the relative load at a time of day. There is one daily wave, and three twenty-minute campaigns.
func wave(at time.Duration) float64 {
	at %= day
	s := math.Sin(math.Pi * (at - 4*time.Hour).Hours() / 24)
	height := 0.35 + 1.3*s*s
	for _, hour := range []float64{10, 14, 20} {
		if from := time.Duration(hour * float64(time.Hour)); at >= from && at < from+20*time.Minute {
			height *= 1.8
		}
	}
	return height
}

const peakAt = 14*time.Hour + 10*time.Minute

var meanWave = func() (mean float64) {
	for at := time.Duration(0); at < day; at += time.Minute {
		mean += wave(at) / day.Minutes()
	}
	return mean
}()

func rate(perDay float64, at time.Duration) float64 {
	return perDay / day.Seconds() * wave(at) / meanWave
}

// PeakRate converts a number of jobs per day to jobs per second at the busiest time.
func PeakRate(jobs int) float64 { return rate(float64(jobs), peakAt) }

// arrivals calls the function `arrive` at random times until the load ends.
func (w *World) arrivals(perDay float64, arrive func()) {
	most := rate(perDay, peakAt)
	mean := time.Duration(float64(time.Second) / most)
	var next func()
	next = func() {
		if w.closed {
			return
		}
		if w.random.Float64()*most < rate(perDay, w.clock.sinceMidnight()) {
			arrive()
		}
		w.clock.After(exponential(w.random, mean), next)
	}
	w.clock.After(exponential(w.random, mean), next)
}

func exponential(random *rand.Rand, mean time.Duration) time.Duration {
	return time.Duration(random.ExpFloat64() * float64(mean))
}

func between(random *rand.Rand, low, high time.Duration) time.Duration {
	return low + time.Duration(random.Int64N(int64(high-low)))
}

// videoWork draws a random time for a video edit: 2 s plus half the clip's length. Lengths are
// log-normal with a median of 15 s, and at most 5 minutes.
func videoWork(random *rand.Rand) time.Duration {
	clip := min(15*math.Exp(random.NormFloat64()), 300)
	return 2*time.Second + time.Duration(clip/2*float64(time.Second))
}
