package sim

import (
	"path"
	"time"

	"cutroom/shared/domain/job"
)

// count is what a simulation counts as it goes.
type count struct {
	asked, accepted, gaveUp int
	refused                 map[string]int
	runs, completed, lost   int
	doubled                 int
	completions             int
	connects                int
	sessionsRefused         map[string]int
	apiRate                 rates
	starts                  rates
	// uploads were stored, and listed are pages that were read; files and lists count what
	// was refused, by reason.
	uploads, listed int
	files, lists    map[string]int
	// puts are those to the prefixes of blobs.
	puts puts
	// ended are accepted jobs whose clients saw their end, completedJobs those with a result.
	ended, completedJobs int
	// waits are those of jobs for their first run, and ends their ends, by account.
	waits map[string][]time.Duration
	ends  map[string]ends
}

func newCount() *count {
	return &count{
		refused: map[string]int{}, sessionsRefused: map[string]int{},
		waits: map[string][]time.Duration{}, ends: map[string]ends{},
		files: map[string]int{}, lists: map[string]int{},
	}
}

// rates counts by second and remembers the busiest.
type rates struct {
	second, now, most int64
	total             int64
}

func (r *rates) add(at time.Time, n int64) {
	if second := at.Unix(); second != r.second {
		r.second, r.now = second, 0
	}
	r.now += n
	r.total += n
	r.most = max(r.most, r.now)
}

// puts counts PUT requests by the prefixes of their names, and remembers the busiest.
type puts struct {
	second int64
	now    map[string]int
	most   int
	total  int
}

// add counts the requests for names that are alike up to the last slash but one.
func (p *puts) add(at time.Time, name string, n int) {
	if second := at.Unix(); second != p.second || p.now == nil {
		p.second, p.now = second, map[string]int{}
	}
	prefix := path.Dir(path.Dir(name))
	p.now[prefix] += n
	p.total += n
	p.most = max(p.most, p.now[prefix])
}

// Most returns the count of the busiest second.
func (r *rates) Most() int { return int(r.most) }

// request counts a call of the API.
func (w *World) request() {
	w.count.apiRate.add(w.clock.Now(), 1)
}

// busy holds an instance of a function for the time.
func (w *World) busy(function string, length time.Duration) {
	w.clock.After(length, w.occupy(function))
}

// occupy holds an instance of a function until the returned function is called.
func (w *World) occupy(function string) (done func()) {
	w.lambdas[function]++
	w.lambdasNow++
	w.most.lambdas = max(w.most.lambdas, w.lambdasNow)
	w.most.byFunction[function] = max(w.most.byFunction[function], w.lambdas[function])
	return func() {
		w.lambdas[function]--
		w.lambdasNow--
	}
}

// most is the highest of what is held at once.
type most struct {
	lambdas    int
	byFunction map[string]int
	// made are the instances that were started.
	made map[string]int
	// tasks are containers of workers that run or start.
	tasks int
	// openJobs are those of one account.
	openJobs int
}

// tasks returns how many containers of workers run or start. Those that a deploy starts in
// the place of others are left out: ECS stops the others first where there is no room.
func (w *World) tasks() int { return w.running() + w.containers.starting }

// manyTasks notes how many containers there are.
func (w *World) manyTasks() { w.most.tasks = max(w.most.tasks, w.tasks()) }

// waited notes how long a job has waited for its first run.
func (w *World) waited(j *tracked) {
	wait := j.started.Sub(j.accepted)
	j.count.waits[j.account.Name] = append(j.count.waits[j.account.Name], wait)
}

// finish notes the end of a job that was accepted.
func (w *World) finish(j *tracked) {
	e := j.count.ends[j.account.Name]
	j.count.ended++
	e.all++
	if j.status == job.Completed {
		j.count.completedJobs++
		e.completed++
	}
	j.count.ends[j.account.Name] = e
}

// ends counts the jobs of an account that have ended.
type ends struct{ all, completed int }

// minute is the state at a minute of the day.
type Minute struct {
	At time.Duration
	// Workers run, Desired are wanted; Waiting are messages of both queues.
	Workers, Desired, Waiting int
}

// watch notes the state every minute, and what workers cost.
func (w *World) watch() {
	var look func()
	look = func() {
		if w.stopped {
			return
		}
		w.prune()
		m := Minute{At: w.clock.Since(), Workers: w.running(), Desired: w.containers.desired}
		for _, url := range queueURLs {
			q := w.cloud.SQS.Queue(url)
			m.Waiting += q.Waiting()
		}
		w.minutes = append(w.minutes, m)
		next := time.Minute
		if w.Window > 0 && !w.closed {
			next = min(next, max(w.Window/8, time.Second))
		}
		w.clock.After(next, look)
	}
	look()
}
