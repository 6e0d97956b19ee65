package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sort"
	"time"
)

// The mix of the load. Its parts are assumptions; docs/scale.md names them.
const (
	// videos is the part of jobs that are videos; the others are images, in bursts.
	videos = 0.6
	// imageBurst is how many images come together in the mean.
	imageBurst = 8
	// largest is the part of all jobs that belongs to one account.
	largest = 0.5
	// completionsEach and sessionsEach are how many completions and realtime sessions there
	// are for each job.
	completionsEach, sessionsEach = 2.0, 0.02
)

// Account is a customer.
type Account struct {
	Name string
	// Share is its part of all jobs.
	Share  float64
	secret string
	tier   string
	// files are its latest stored files, by id.
	files []string
}

// newAccounts returns the accounts of a service with so many jobs a day: one with half of
// the jobs, the others by Zipf's law.
func newAccounts(jobs int) []*Account {
	n := min(max(10, jobs/1000), 1000)
	accounts := []*Account{{Name: "largest", Share: largest}}
	sum := 0.0
	for i := 1; i < n; i++ {
		sum += math.Pow(float64(i), -1.1)
	}
	for i := 1; i < n; i++ {
		share := (1 - largest) * math.Pow(float64(i), -1.1) / sum
		accounts = append(accounts, &Account{Name: fmt.Sprintf("account-%04d", i), Share: share})
	}
	for i, a := range accounts {
		a.secret = fmt.Sprintf("ck_simulated_%06d", i)
	}
	return accounts
}

// chooser draws accounts by their shares.
type chooser struct {
	accounts []*Account
	upTo     []float64
}

func newChooser(accounts []*Account) *chooser {
	c := &chooser{accounts: accounts}
	sum := 0.0
	for _, a := range accounts {
		sum += a.Share
		c.upTo = append(c.upTo, sum)
	}
	return c
}

func (c *chooser) choose(random *rand.Rand) *Account {
	at := sort.SearchFloat64s(c.upTo, random.Float64()*c.upTo[len(c.upTo)-1])
	return c.accounts[min(at, len(c.accounts)-1)]
}

const day = 24 * time.Hour

// wave is how busy a time of the day is, as a multiple of nothing in particular: a wave of
// the day, and three campaigns of twenty minutes.
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

// peakAt is the busiest time of the day.
const peakAt = 14*time.Hour + 10*time.Minute

// meanWave is the mean of the wave over a day.
var meanWave = func() float64 {
	sum, n := 0.0, 0
	for at := time.Duration(0); at < day; at += time.Minute {
		sum += wave(at)
		n++
	}
	return sum / float64(n)
}()

// rate returns how many of so many a day come in a second at the time of the day.
func rate(perDay float64, at time.Duration) float64 {
	return perDay / day.Seconds() * wave(at) / meanWave
}

// PeakRate returns how many of so many jobs a day come in a second of the busiest time.
func PeakRate(jobs int) float64 { return rate(float64(jobs), peakAt) }

// arrivals calls the function as often as so many a day come, until the simulation stops
// taking load.
func (w *World) arrivals(perDay float64, arrive func()) {
	most := rate(perDay, peakAt)
	var next func()
	next = func() {
		if w.closed {
			return
		}
		if w.random.Float64()*most < rate(perDay, w.clock.Since()) {
			arrive()
		}
		w.clock.After(exponential(w.random, time.Duration(float64(time.Second)/most)), next)
	}
	w.clock.After(exponential(w.random, time.Duration(float64(time.Second)/most)), next)
}

func exponential(random *rand.Rand, mean time.Duration) time.Duration {
	return time.Duration(random.ExpFloat64() * float64(mean))
}

func between(random *rand.Rand, low, high time.Duration) time.Duration {
	return low + time.Duration(random.Int64N(int64(high-low)))
}

// videoWork draws how long a worker edits a video: half of the length of the clip, which is
// log-normal with a median of 15 s and at most 5 minutes, and 2 s.
func videoWork(random *rand.Rand) time.Duration {
	clip := min(15*math.Exp(random.NormFloat64()), 300)
	return 2*time.Second + time.Duration(clip/2*float64(time.Second))
}

// meanVideoWork and meanImageWork are the means of what is drawn.
const meanVideoWork, meanImageWork = 14 * time.Second, 2 * time.Second

func imageWork(random *rand.Rand) time.Duration { return between(random, time.Second, 3*time.Second) }
