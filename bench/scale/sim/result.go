package sim

import (
	"maps"
	"time"

	"cutroom/shared/domain/job"
	"cutroom/shared/testkit/fakeaws"
)

// Result is what a simulation has counted.
type Result struct {
	Config
	// Length is how long what was counted lasted.
	Length time.Duration
	// Asked are the jobs of clients, Accepted those of them that were, and GaveUp those whose
	// clients stopped trying. Refused counts refusals by reason; "failed" are no refusals
	// but errors.
	Asked, Accepted, GaveUp int
	Refused                 map[string]int
	// Ended are the accepted jobs whose clients saw their end, Completed those with a
	// result. Lost have no end long after their deadline, and Doubled were completed more
	// than once. Unbilled is how many more jobs completed than the usage of their accounts
	// has. These three are of all jobs, of those before a window too.
	Ended, Completed, Lost, Doubled, Unbilled int
	// Completions were asked for, Connects are clients that opened a session, and
	// SessionsRefused those that were refused, by reason.
	// Uploads were stored, and Listed are pages that were read; FilesRefused and ListsRefused
	// count refusals by reason.
	Completions, Connects      int
	Uploads, Listed            int
	FilesRefused, ListsRefused map[string]int
	SessionsRefused            map[string]int
	// Runs were started by workers; LostRuns found that another run has the job.
	Runs, LostRuns int
	// Waits are those of jobs for their first run, by account, in order.
	Waits map[string][]time.Duration
	// InTime is the part of ended jobs that completed, by account.
	InTime  map[string]float64
	Minutes []Minute
	Faults  []Fault
	// Hottest are the kinds of partitions, the busiest first; Tables what tables used.
	Hottest []fakeaws.Heat
	Tables  map[string]fakeaws.Total
	Peaks   Peaks
}

// Peaks are the highest counts at once, or in a second.
type Peaks struct {
	Lambdas   int
	Functions map[string]int
	// Made are the instances of functions that were started.
	Made map[string]int
	// Tasks are containers of workers that run or start.
	Tasks int
	// InFlight are the messages of the busier queue, OpenExecutions those of jobs.
	InFlight, OpenExecutions int
	// Requests of the API, Starts of executions and Describes of the containers' service
	// are in the busiest second.
	Requests, Starts, Describes int
	// Puts are those of the busiest prefix of blobs in the busiest second.
	Puts int
	// OpenJobs is the largest set of open jobs of an account.
	OpenJobs int
}

// measure returns what was counted while there was load. Of what becomes of the jobs afterwards
// drain tells.
func (w *World) measure(length time.Duration) *Result {
	r := &Result{
		Config: w.Config, Length: length, Completions: w.count.completions, Connects: w.count.connects,
		SessionsRefused: maps.Clone(w.count.sessionsRefused), Uploads: w.count.uploads, Listed: w.count.listed,
		FilesRefused: maps.Clone(w.count.files), ListsRefused: maps.Clone(w.count.lists),
		Hottest: w.cloud.DynamoDB.Hottest(), Tables: w.cloud.DynamoDB.Totals(),
	}
	for _, lane := range []job.Lane{job.VideoLane, job.ImageLane} {
		r.Peaks.InFlight = max(r.Peaks.InFlight, w.cloud.SQS.Queue(queueURLs[lane]).MostInFlight)
	}
	r.Peaks.Lambdas, r.Peaks.Functions = w.most.lambdas, maps.Clone(w.most.byFunction)
	r.Peaks.Made = maps.Clone(w.most.made)
	r.Peaks.Tasks = w.most.tasks
	r.Peaks.OpenJobs = w.most.openJobs
	r.Peaks.OpenExecutions = w.cloud.StepFn.MostOpen
	r.Peaks.Requests, r.Peaks.Starts = w.count.apiRate.Most(), w.count.starts.Most()
	r.Peaks.Puts = w.count.puts.most
	r.Peaks.Describes = w.containers.reads.Most()
	return r
}

// Quantile returns a quantile of waits in order, 0 if there are none.
func Quantile(waits []time.Duration, q float64) time.Duration {
	if len(waits) == 0 {
		return 0
	}
	return waits[min(int(q*float64(len(waits))), len(waits)-1)]
}
