package awscost

import "math"

// HoursOfMonth is how many hours a month has, as AWS counts in its examples.
const HoursOfMonth = 730

// lingers is how long a worker waits for another job before it stops, in seconds
// (docs/cost.md, "Workers").
const lingers = 600

// keptDays is for how long inputs and results of jobs are stored.
const keptDays = 2

// Use is what a deploy is used for in a month.
type Use struct {
	// Jobs are video jobs. A worker takes Seconds for each of them.
	Jobs    float64 `json:"jobs"`
	Seconds float64 `json:"seconds"`
	// Polls is how often a client reads the status of a job. It downloads the result
	// once. ResultMB and InputMB are the sizes of a job's files.
	Polls    float64 `json:"polls"`
	InputMB  float64 `json:"input_mb"`
	ResultMB float64 `json:"result_mb"`
	// Completions are chat completions; the model server takes WaitSeconds for each.
	Completions float64 `json:"completions"`
	WaitSeconds float64 `json:"wait_seconds"`
	// WorkerHour is the price of an hour of a worker, in dollars; 0 is the preview worker.
	WorkerHour float64 `json:"worker_hour"`
	// Realtime says that the deploy has realtime=true.
	Realtime bool `json:"realtime"`
}

// UsualUse is the use that docs/cost.md assumes for so many jobs and completions.
func UsualUse(jobs, completions float64) Use {
	return Use{
		Jobs: jobs, Seconds: 30, Polls: 10, InputMB: 5, ResultMB: 5, Completions: completions, WaitSeconds: 2,
	}
}

// Part is a part of what a month costs, in dollars.
type Part struct {
	Name    string  `json:"part"`
	Dollars float64 `json:"dollars"`
}

// Sum is what a month costs, in dollars.
type Sum struct {
	Use   Use     `json:"use"`
	Parts []Part  `json:"parts"`
	Total float64 `json:"total"`
	// AboveFree is the total without what is free in every month.
	AboveFree float64 `json:"above_free"`
	// WorkerHours is for how many hours workers run, WorkersAtOnce their mean number.
	WorkerHours   float64 `json:"worker_hours"`
	WorkersAtOnce float64 `json:"workers_at_once"`
}

// WorkerHours returns for how many hours workers run in a month: for as long as they work,
// and at least for as long as jobs that come evenly keep the first of them awake.
func (u Use) WorkerHours() float64 {
	awake := min(u.Jobs*(u.Seconds+lingers)/3600, HoursOfMonth)
	return max(u.Jobs*u.Seconds/3600, awake)
}

// Month returns what a month of a deploy costs, by part.
func (c Counts) Month(u Use) Sum {
	s := Sum{Use: u, WorkerHours: u.WorkerHours()}
	s.WorkersAtOnce = s.WorkerHours / HoursOfMonth
	all, other := Quantities{}, 0.0
	part := func(name string, q Quantities) {
		all.Add(q, 1)
		s.Parts = append(s.Parts, Part{name, q.Dollars()})
	}
	c.jobParts(u, part)
	if u.Jobs > 0 && u.WorkerHour > 0 {
		other = s.WorkerHours * u.WorkerHour
		s.Parts = append(s.Parts, Part{"workers", other})
	} else if u.Jobs > 0 {
		part("workers", c.WorkerHour.times(s.WorkerHours))
	}
	c.completionParts(u, part)
	fixed := c.IdleMonth()
	if u.Realtime {
		fixed.Add(c.Realtime, 1)
	}
	part("fixed", fixed)
	s.Total, s.AboveFree = all.Dollars()+other, all.DollarsAboveFree()+other
	return s
}

// jobParts passes on what jobs use outside of workers.
func (c Counts) jobParts(u Use, part func(string, Quantities)) {
	if u.Jobs == 0 {
		return
	}
	job, _ := c.Scenario("job")
	control := job.Quantities.times(u.Jobs)
	control.Add(c.WorkMinute, u.Jobs*u.Seconds/60)
	part("jobs", control)
	status, _ := c.Scenario("status")
	part("reads of their status", status.Quantities.times(u.Jobs*u.Polls))
	content, _ := c.Scenario("content")
	downloads := content.Quantities.times(u.Jobs)
	// Each 10 MB is a request of API Gateway; Lambda charges for what is above 6 MB.
	downloads[APIRequest] += u.Jobs * (max(1, math.Ceil(u.ResultMB/10)) - 1)
	downloads[StreamedByteExtra] += u.Jobs * max(0, u.ResultMB-6) / 1000
	part("downloads of results", downloads)
	part("transfer to the Internet", Quantities{TransferOut: u.Jobs * u.ResultMB / 1000})
	part("stored inputs and results", Quantities{
		BlobMonth: u.Jobs * (u.InputMB + u.ResultMB) / 1000 * keptDays * 24 / HoursOfMonth,
	})
}

// completionParts passes on what completions use.
func (c Counts) completionParts(u Use, part func(string, Quantities)) {
	if u.Completions == 0 {
		return
	}
	s, _ := c.Scenario("completion")
	part("completions", s.Quantities.times(u.Completions))
	wait := Quantities{}
	for _, f := range s.Functions {
		wait[FunctionTime] += u.Completions * u.WaitSeconds * float64(f.Memory) / 1024
	}
	part("functions that wait for models", wait)
	part("metrics of one model", Quantities{CustomMetric: float64(s.Metrics)})
}

// times returns n times the quantities.
func (q Quantities) times(n float64) Quantities {
	more := Quantities{}
	more.Add(q, n)
	return more
}
