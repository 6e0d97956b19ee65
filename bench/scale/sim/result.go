package sim

import (
	"time"

	"cutroom/shared/domain/fault"
	"cutroom/shared/testkit/fakeaws"
)

// Result is the outcome of a simulation.
type Result struct {
	Config
	// Counts are of the window or the day. The numbers of jobs include their ends after it.
	Counts
	// Lost jobs had no end long after their deadline. Doubled jobs completed more than once. Unbilled is how
	// many more jobs completed than the usage of all accounts shows. These include the jobs before a window.
	Lost, Doubled, Unbilled int
	// Hottest are the kinds of partitions, the busiest first, and Tables the totals of tables and indexes.
	Hottest []fakeaws.Heat
	Tables  map[string]fakeaws.Total
	Peaks   Peaks
}

// Counts are clients' requests and their outcomes.
type Counts struct {
	// Asked are the jobs of clients. GaveUp jobs were refused too often.
	Asked, GaveUp int
	// Ended are the accepted jobs whose clients saw their end, Completed those with a result.
	Ended, Completed int
	// Runs were started by workers.
	Runs int
	// Done counts successful calls, for example of "jobs" and "completions".
	Done map[string]int
	// Refused counts refusals, for example of "jobs: limited". "failed" is an error instead of a refusal.
	Refused map[string]int
	// Waits are the waits of jobs for their first run, by account and in order.
	Waits map[string][]time.Duration

	doubled int
}

func newCounts() *Counts {
	return &Counts{Done: map[string]int{}, Refused: map[string]int{}, Waits: map[string][]time.Duration{}}
}

// count counts a call.
func (c *Counts) count(what string, err error) {
	if err == nil {
		c.Done[what]++
		return
	}
	reason := "failed"
	for _, code := range []fault.Code{fault.Limited, fault.Unavailable, fault.Exhausted} {
		if fault.Is(err, code) {
			reason = string(code)
		}
	}
	c.Refused[what+": "+reason]++
}

// Peaks are the highest numbers at once or in a second, while there was load.
type Peaks struct {
	// Lambdas are the instances of functions that served calls at once.
	Lambdas int
	// Tasks are the containers of workers that ran or started. FewestWorkers ran all the time.
	Tasks, FewestWorkers int
	// OpenJobs is the highest number of open jobs of one account.
	OpenJobs int
	// Requests of the API, Starts of executions and Describes of the service of containers are per second.
	Requests, Starts, Describes Rate
}

// Rate counts by the second.
type Rate struct {
	// Most is the count of the busiest second.
	Most        int
	second, now int64
}

func (r *Rate) add(at time.Time) {
	if second := at.Unix(); second != r.second {
		r.second, r.now = second, 0
	}
	r.now++
	r.Most = max(r.Most, int(r.now))
}

// Quantile returns a quantile of sorted waits, and 0 without any.
func Quantile(waits []time.Duration, q float64) time.Duration {
	if len(waits) == 0 {
		return 0
	}
	return waits[min(int(q*float64(len(waits))), len(waits)-1)]
}
