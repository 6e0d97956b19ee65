package sim

import (
	"context"
	"fmt"
	"time"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
	serving "cutroom/shared/service/worker"
)

// The workers' settings, as in cmd/worker.
const (
	lease         = 45 * time.Second
	progressEvery = 5 * time.Second
	beatEvery     = 30 * time.Second
	// A run is stopped this long before its job's deadline.
	deadlineSlack = 3 * time.Second
	settleTime    = 10 * time.Second
	// receiveTime is the time between the arrival of a message and its receipt by a waiting worker.
	receiveTime = 30 * time.Millisecond
)

// worker is a container with a slot in each lane.
type worker struct {
	*World
	zone            int
	alive, draining bool
	holds           map[job.Lane]*holding
}

type holding struct {
	*worker
	lane     job.Lane
	delivery serving.Delivery
	job      job.Job
	nonce    string
	client   *client
	over     bool
	done     float64
}

func (w *World) startWorker() {
	w.made++
	one := &worker{World: w, zone: w.made % zones, alive: true, holds: map[job.Lane]*holding{}}
	w.workers = append(w.workers, one)
	w.alive++
	w.containers.notePeak()
	first := between(w.random, 0, beatEvery)
	if w.made == 1 {
		first = 0
	}
	w.clock.After(first, one.beat)
	for _, lane := range lanes {
		one.offer(lane)
	}
}

// beat records that the worker is running. It stops when the load ends.
func (w *worker) beat() {
	if !w.alive || w.closed {
		return
	}
	for _, lane := range lanes {
		_ = w.service.workers.Beat(context.Background(), lane) // the next beat tries again
	}
	w.clock.After(beatEvery, w.beat)
}

func (w *worker) offer(lane job.Lane) {
	w.idle[lane] = append(w.idle[lane], w)
	w.match(lane)
}

// match gives queued messages to waiting slots.
func (w *World) match(lane job.Lane) {
	queue := w.cloud.SQS.Queue(queueURLs[lane])
	if w.matching[lane] || queue.Waiting() == 0 || len(w.idle[lane]) == 0 {
		return
	}
	w.matching[lane] = true
	w.clock.After(receiveTime, func() {
		w.matching[lane] = false
		for queue.Waiting() > 0 && len(w.idle[lane]) > 0 {
			one := w.idle[lane][0]
			w.idle[lane] = w.idle[lane][1:]
			if one.alive && !one.draining {
				w.clock.nextCaller()
				one.receive(lane)
			}
		}
	})
}

// receive takes a message from the queue and starts a run of its job.
func (w *worker) receive(lane job.Lane) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	queue := w.cloud.SQS.Queue(queueURLs[lane])
	queue.Empty = cancel
	delivery, err := w.service.queue.Receive(ctx, lane, lease)
	queue.Empty = nil
	if err != nil {
		w.offer(lane)
		return
	}
	h := &holding{worker: w, lane: lane, delivery: delivery, nonce: w.newID()}
	w.holds[lane] = h
	h.start()
}

func (h *holding) start() {
	ctx := context.Background()
	j, err := h.service.runs.Start(ctx, h.delivery.JobID(), h.nonce, h.clock.Now())
	h.job, h.client = j, h.clients[j.ID]
	switch {
	case fault.Is(err, fault.Conflict), fault.Is(err, fault.NotFound), err == nil && h.client == nil:
		// The job has ended, or its client has deleted it.
		h.settle(func() error { return h.delivery.Drop(ctx) })
		return
	case err != nil:
		h.settle(func() error { return h.delivery.Nack(ctx, time.Second) })
		return
	}
	counts := h.client.counts
	counts.Runs++
	if h.client.started.IsZero() {
		h.client.started = h.clock.Now()
		name := h.client.account.name
		counts.Waits[name] = append(counts.Waits[name], h.clock.Now().Sub(h.client.accepted))
	}
	if left := j.Deadline.Sub(h.clock.Now()) - deadlineSlack; h.client.work > left {
		h.later(left, func() {
			h.settle(func() error { return h.delivery.Fail(ctx, h.nonce, job.TimeoutFailure()) })
		})
	}
	h.later(lease/3, h.keep)
	h.later(progressEvery, h.progress)
	h.later(h.client.work, h.complete)
}

// later schedules a function call. The call is skipped if the worker is no longer working on the job.
func (h *holding) later(wait time.Duration, call func()) {
	h.clock.After(wait, func() {
		if h.worker.alive && !h.over {
			call()
		}
	})
}

// keep extends the lease repeatedly.
func (h *holding) keep() {
	if err := h.delivery.Extend(context.Background(), lease); fault.Is(err, fault.Conflict) {
		h.release() // another run owns the job
		return
	}
	h.later(lease/3, h.keep)
}

func (h *holding) progress() {
	h.done += progressEvery.Seconds() / h.client.work.Seconds()
	err := h.service.runs.Progress(context.Background(), h.job.ID, h.nonce, min(h.done, 0.99))
	if fault.Is(err, fault.Conflict) {
		h.release() // another run owns the job
		return
	}
	h.later(progressEvery, h.progress)
}

func (h *holding) complete() {
	result := job.Result{
		Blob: h.job.ResultBlob(), MIME: "video/mp4", Size: 7_654_321, Width: 1280, Height: 720,
		SHA256: fmt.Sprintf("%064d", 1), Duration: h.client.work, Engine: "simulated",
	}
	h.settle(func() error {
		err := h.delivery.Complete(context.Background(), h.nonce, result)
		if err == nil {
			h.client.completions++
			// Check that the job still exists, as a worker does after storing thumbnails.
			_, _ = h.service.runs.Get(context.Background(), h.job.ID)
		}
		return err
	})
}

// settle reports a run, retrying while the store fails, and then frees the slot.
func (h *holding) settle(report func() error) {
	until := h.clock.Now().Add(settleTime)
	wait := 50 * time.Millisecond
	h.over = true
	var try func()
	try = func() {
		if !h.worker.alive {
			return
		}
		err := report()
		if err != nil && !fault.Is(err, fault.Conflict) && !fault.Is(err, fault.NotFound) && h.clock.Now().Before(until) {
			h.clock.After(wait, try)
			wait *= 2
			return
		}
		h.release()
	}
	try()
}

func (h *holding) release() {
	h.over = true
	if h.holds[h.lane] != h {
		return
	}
	delete(h.holds, h.lane)
	if h.worker.alive && !h.draining {
		h.offer(h.lane)
	}
}

// kill stops the worker without notice.
func (w *worker) kill() {
	if w.alive {
		w.alive = false
		w.World.alive--
		w.peaks.FewestWorkers = min(w.peaks.FewestWorkers, w.World.alive)
	}
}

// drain returns the worker's jobs to the queue and stops the worker. The interrupted runs do not count toward the
// jobs' run limit.
func (w *worker) drain() {
	w.draining = true
	for _, lane := range lanes {
		if h := w.holds[lane]; h != nil && !h.over {
			h.over = true
			_ = w.service.runs.Release(context.Background(), h.job.ID, h.nonce) // if this fails, the lease expires
			_ = h.delivery.Nack(context.Background(), 0)
		}
	}
	w.kill()
}
