package sim

import (
	"time"

	"cutroom/shared/domain/fault"
	"cutroom/shared/testkit/fakeaws"
)

type Result struct {
	Config
	// Counts covers the window or the day. The numbers of jobs include their ends after it.
	Counts
	// Lost counts jobs that have not ended long after their deadline. Doubled counts jobs that
	// completed more than once. Unbilled is the number of completed jobs minus the number in the
	// usage of all accounts. These include the jobs before a window.
	Lost, Doubled, Unbilled int
	// Hottest lists the busiest partitions first. Tables holds the totals of tables and indexes.
	Hottest []fakeaws.Heat
	Tables  map[string]fakeaws.Total
	Peaks   Peaks
}

type Counts struct {
	// Asked counts the clients' jobs. GaveUp counts the jobs that were rejected too often.
	Asked, GaveUp int
	// Ended counts jobs whose clients saw the end, and Completed jobs with a result.
	Ended, Completed int
	Runs             int
	// Done counts successful calls, for example "jobs" and "completions".
	Done map[string]int
	// Rejected counts rejections, such as "jobs: limited". "failed" counts other errors.
	Rejected map[string]int
	// Waits holds the waits of jobs for their first run, by account and in order.
	Waits map[string][]time.Duration

	doubled int
}

func newCounts() *Counts {
	return &Counts{Done: map[string]int{}, Rejected: map[string]int{}, Waits: map[string][]time.Duration{}}
}

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
	c.Rejected[what+": "+reason]++
}

type Peaks struct {
	// Lambdas is the highest number of functions that ran at once.
	Lambdas int
	// Tasks is the highest number of worker containers that ran or started. FewestWorkers is the
	// lowest number of running workers.
	Tasks, FewestWorkers int
	// OpenJobs is the highest number of open jobs of one account.
	OpenJobs int
	// Requests of the API, Starts of executions and Describes of the ECS service are rates per second.
	Requests, Starts, Describes Rate
}

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
