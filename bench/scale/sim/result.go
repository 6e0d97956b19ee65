package sim

import (
	"time"

	"cutroom/shared/domain/fault"
	"cutroom/shared/testkit/fakeaws"
)

type Result struct {
	Config
	// Counts covers the window or the day. A job submitted in that time is counted even if it ends later.
	Counts
	// Lost counts jobs that have not ended long after their deadline. Doubled counts jobs that
	// completed more than once. Unbilled is the number of completed jobs minus the number of billed
	// jobs of all accounts. All three include jobs from before the window.
	Lost, Doubled, Unbilled int
	// Hottest lists partitions, the busiest first. Tables holds the totals for each table and index.
	Hottest []fakeaws.Heat
	Tables  map[string]fakeaws.Total
	Peaks   Peaks
}

type Counts struct {
	// Asked counts the jobs that clients tried to submit. GaveUp counts the jobs whose clients gave
	// up after too many rejections.
	Asked, GaveUp int
	// Ended counts the jobs whose clients have seen them end. Completed counts the jobs with a result.
	Ended, Completed int
	Runs             int
	// Done counts successful calls by kind, for example "jobs" and "completions".
	Done map[string]int
	// Rejected counts rejections by kind, such as "jobs: limited". "failed" counts other errors.
	Rejected map[string]int
	// Waits holds how long each job waited for its first run, by account, shortest first.
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
	// Tasks is the highest number of worker containers that were running or starting. FewestWorkers
	// is the lowest number of running workers.
	Tasks, FewestWorkers int
	// OpenJobs is the highest number of open jobs of one account.
	OpenJobs int
	// The rates per second of API requests, execution starts and calls of ECS DescribeServices.
	Requests, Starts, Describes Rate
}

type Rate struct {
	// Most is the count in the busiest second.
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

// Quantile returns a quantile of sorted waits, or 0 if waits is empty.
func Quantile(waits []time.Duration, q float64) time.Duration {
	if len(waits) == 0 {
		return 0
	}
	return waits[min(int(q*float64(len(waits))), len(waits)-1)]
}
