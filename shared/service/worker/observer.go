package worker

import (
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"cutroom/shared/domain/job"
)

// Observer receives events for metrics. Its method is called concurrently and must not block.
type Observer interface {
	Ran(Run)
}

type Outcome string

const (
	Completed Outcome = "completed"
	// A Failed run ended its job.
	Failed Outcome = "failed"
	// A Repeated run failed, but its job will run again.
	Repeated Outcome = "repeated"
	// A HandedBack run was released because of a drain or because the machine lacked a resource.
	HandedBack Outcome = "handed_back"
	// A Lost run found that its job had been taken by another worker or had ended.
	Lost Outcome = "lost"
)

type Run struct {
	Lane  job.Lane
	Model string
	// Number counts a job's runs, starting from 1.
	Number  int
	Outcome Outcome
	Code    job.Code
	// Waited is the time from the job's creation until the run started.
	Waited, Took time.Duration
	// Stages contains the duration of each stage that the run reached (fetch, probe, enhance,
	// engine, sign, store), and of the engine's own stages as engine.NAME.
	Stages map[string]time.Duration
}

func (r Run) stages() slog.Attr {
	var took []any
	for _, name := range slices.Sorted(maps.Keys(r.Stages)) {
		took = append(took, slog.Duration(name, r.Stages[name]))
	}
	return slog.Group("stages", took...)
}

const (
	stageFetch   = "fetch"
	stageProbe   = "probe"
	stageEnhance = "enhance"
	stageEngine  = "engine"
	stageSign    = "sign"
	stageStore   = "store"
)

type Load struct {
	Lane job.Lane
	// Busy counts the slots whose job is in the engine. Prefetched counts the jobs that are waiting for a slot.
	Slots, Busy, Prefetched int
	// BusyTime is the total time that jobs have spent in the engine since the worker was created.
	// Divided by the elapsed time and the number of slots, it is the utilization.
	BusyTime time.Duration
}

func (w *Worker) Loads() []Load {
	loads := make([]Load, 0, len(w.loads))
	for _, lane := range []job.Lane{job.VideoLane, job.ImageLane} {
		if l, ok := w.loads[lane]; ok {
			loads = append(loads, l.read(lane, time.Now()))
		}
	}
	return loads
}

type load struct {
	slots int

	mu          sync.Mutex
	busy, ahead int
	total       time.Duration
	// counted is the time up to which total includes the busy slots.
	counted time.Time
}

// count adds the busy time since its last call to the total. The lock must be held.
func (l *load) count(now time.Time) {
	if l.busy > 0 {
		l.total += time.Duration(l.busy) * now.Sub(l.counted)
	}
	l.counted = now
}

func (l *load) begin(now time.Time) { l.change(now, 1) }
func (l *load) end(now time.Time)   { l.change(now, -1) }

func (l *load) change(now time.Time, by int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count(now)
	l.busy += by
}

func (l *load) prefetched(by int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ahead += by
}

func (l *load) read(lane job.Lane, now time.Time) Load {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count(now)
	return Load{Lane: lane, Slots: l.slots, Busy: l.busy, Prefetched: l.ahead, BusyTime: l.total}
}
