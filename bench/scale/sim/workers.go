package sim

import (
	"context"
	"fmt"
	"time"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
	serving "cutroom/shared/service/worker"
)

// What workers do, as cmd/worker sets it.
const (
	lease         = 45 * time.Second
	progressEvery = 5 * time.Second
	beatEvery     = 30 * time.Second
	// deadlineSlack is how long before its job's deadline a run is stopped.
	deadlineSlack = 3 * time.Second
	// settleTime is how long a report is repeated.
	settleTime = 10 * time.Second
	// receiveTime is from a message's arrival to a waiting worker.
	receiveTime = 30 * time.Millisecond
)

// worker is a container with a slot in each lane.
type worker struct {
	*World
	number, zone int
	alive        bool
	draining     bool
	// holds are the deliveries in its slots.
	holds map[job.Lane]*holding
}

// holding is a job in a slot.
type holding struct {
	worker   *worker
	delivery serving.Delivery
	job      job.Job
	nonce    string
	over     bool
	done     float64
}

// slot is a free slot of a worker.
type slot struct {
	worker *worker
	lane   job.Lane
}

// startWorker starts a worker that takes jobs at once.
func (w *World) startWorker() *worker {
	w.workersMade++
	one := &worker{
		World: w, number: w.workersMade, zone: w.workersMade % zones, alive: true, holds: map[job.Lane]*holding{},
	}
	w.fleetOf = append(w.fleetOf, one)
	w.aliveNow++
	w.manyTasks()
	var beat func()
	beat = func() {
		if !one.alive || w.closed { // without load nobody asks for warm workers
			return
		}
		for _, lane := range lanes {
			_ = w.service.workers.Beat(context.Background(), lane) // the next beat repeats it
		}
		w.clock.After(beatEvery, beat)
	}
	if w.workersMade == 1 {
		beat()
	} else {
		w.clock.After(between(w.random, 0, beatEvery), beat)
	}
	for _, lane := range lanes {
		w.offer(slot{one, lane})
	}
	return one
}

var lanes = []job.Lane{job.VideoLane, job.ImageLane}

// offer lets a free slot wait for a job.
func (w *World) offer(s slot) {
	w.idle[s.lane] = append(w.idle[s.lane], s)
	w.match(s.lane)
}

// match lets a waiting slot receive, if there is a message.
func (w *World) match(lane job.Lane) {
	if w.matching[lane] || w.cloud.SQS.Queue(queueURLs[lane]).Waiting() == 0 || len(w.idle[lane]) == 0 {
		return
	}
	w.matching[lane] = true
	w.clock.After(receiveTime, func() {
		w.matching[lane] = false
		for w.cloud.SQS.Queue(queueURLs[lane]).Waiting() > 0 && len(w.idle[lane]) > 0 {
			s := w.idle[lane][0]
			w.idle[lane] = w.idle[lane][1:]
			if s.worker.alive && !s.worker.draining {
				w.clock.Apart()
				s.worker.receive(lane)
			}
		}
	})
}

// receive takes a message, and starts a run of its job.
func (w *worker) receive(lane job.Lane) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	queue := w.cloud.SQS.Queue(queueURLs[lane])
	queue.Empty = cancel
	delivery, err := w.service.queue.Receive(ctx, lane, lease)
	queue.Empty = nil
	if err != nil {
		w.offer(slot{w, lane})
		return
	}
	w.nonces++
	h := &holding{worker: w, delivery: delivery, nonce: fmt.Sprintf("%016x", w.nonces)}
	w.holds[lane] = h
	h.start(lane)
}

func (h *holding) start(lane job.Lane) {
	w, ctx := h.worker, context.Background()
	j, err := w.service.runs.Start(ctx, h.delivery.JobID(), h.nonce, w.clock.Now())
	switch {
	case err == nil:
	case fault.Is(err, fault.Conflict), fault.Is(err, fault.NotFound):
		// It has ended, or is over: of what is left, the machine takes care.
		h.settle(lane, func() error { return h.delivery.Drop(ctx) })
		return
	default:
		h.settle(lane, func() error { return h.delivery.Nack(ctx, time.Second) })
		return
	}
	h.job = j
	known := w.jobs[j.ID]
	if known == nil { // its client has forgotten it
		h.settle(lane, func() error { return h.delivery.Drop(ctx) })
		return
	}
	known.runs++
	known.count.runs++
	if known.started.IsZero() {
		known.started = w.clock.Now()
		w.waited(known)
	}
	work := known.work
	if left := j.Deadline.Sub(w.clock.Now()) - deadlineSlack; work > left {
		w.clock.After(left, func() {
			if h.active() {
				h.settle(lane, func() error { return h.delivery.Fail(ctx, h.nonce, job.TimeoutFailure()) })
			}
		})
	}
	h.keep(lane)
	h.progress(lane, work)
	w.clock.After(work, func() {
		if h.active() {
			h.complete(lane, known)
		}
	})
}

// active reports whether the worker still works on the job.
func (h *holding) active() bool { return h.worker.alive && !h.over }

// keep extends the lease.
func (h *holding) keep(lane job.Lane) {
	h.worker.clock.After(lease/3, func() {
		if !h.active() {
			return
		}
		if err := h.delivery.Extend(context.Background(), lease); fault.Is(err, fault.Conflict) {
			h.lost(lane)
			return
		}
		h.keep(lane)
	})
}

// progress records how far the run is.
func (h *holding) progress(lane job.Lane, work time.Duration) {
	h.worker.clock.After(progressEvery, func() {
		if !h.active() {
			return
		}
		h.done += progressEvery.Seconds() / work.Seconds()
		err := h.worker.service.runs.Progress(context.Background(), h.job.ID, h.nonce, min(h.done, 0.99))
		if fault.Is(err, fault.Conflict) {
			h.lost(lane)
			return
		}
		h.progress(lane, work)
	})
}

// lost leaves a job that another run has.
func (h *holding) lost(lane job.Lane) {
	if known := h.worker.jobs[h.job.ID]; known != nil {
		known.count.lost++
	}
	h.free(lane)
}

func (h *holding) complete(lane job.Lane, known *tracked) {
	w := h.worker
	result := job.Result{
		Blob: h.job.ResultBlob(), MIME: "video/mp4", Size: 7_654_321, Width: 1280, Height: 720,
		SHA256: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", Duration: known.work, Engine: "simulated",
	}
	w.count.puts.add(w.clock.Now(), result.Blob, 2) // and its thumbnails
	h.settle(lane, func() error {
		err := h.delivery.Complete(context.Background(), h.nonce, result)
		if err == nil {
			known.completions++
			w.count.completed++
			// The worker looks whether the job was deleted while thumbnails were stored.
			_, _ = w.service.runs.Get(context.Background(), h.job.ID)
		}
		return err
	})
}

// settle makes a report, and repeats it while the store fails. Then the slot is free.
func (h *holding) settle(lane job.Lane, report func() error) {
	until := h.worker.clock.Now().Add(settleTime)
	wait := 50 * time.Millisecond
	h.over = true
	var try func()
	try = func() {
		if !h.worker.alive {
			return
		}
		err := report()
		if err != nil && !fault.Is(err, fault.Conflict) && !fault.Is(err, fault.NotFound) &&
			h.worker.clock.Now().Before(until) {
			h.worker.clock.After(wait, try)
			wait *= 2
			return
		}
		h.free(lane)
	}
	try()
}

// free frees the slot.
func (h *holding) free(lane job.Lane) {
	h.over = true
	if h.worker.holds[lane] != h {
		return
	}
	delete(h.worker.holds, lane)
	if h.worker.alive && !h.worker.draining {
		h.worker.offer(slot{h.worker, lane})
	}
}

// working reports whether the worker has a job.
func (w *worker) working() bool { return len(w.holds) > 0 }

// kill ends the worker without a word.
func (w *worker) kill() {
	if w.alive {
		w.alive = false
		w.aliveNow--
	}
}

// drain hands the worker's jobs back, which costs them no run, and ends it.
func (w *worker) drain() {
	w.draining = true
	ctx := context.Background()
	for _, lane := range lanes {
		h := w.holds[lane]
		if h == nil || h.over {
			continue
		}
		h.over = true
		_ = w.service.runs.Release(ctx, h.job.ID, h.nonce) // the lease's end repeats it
		_ = h.delivery.Nack(ctx, 0)
	}
	w.kill()
}
