package sim

import (
	"context"
	"slices"
	"time"
)

// containers simulates the ECS service whose tasks are the workers. It implements fleet.Service.
type containers struct {
	*World
	desired int
	// starting is the number of tasks whose container is not running yet.
	starting int
	// most is the maximum number of running tasks while hardware is scarce; it is 0 at other times.
	most int
}

// A container takes between shortestStart and longestStart to start. ECS notices a lost task after noticeTime.
const (
	shortestStart, longestStart = time.Minute, 10 * time.Minute
	noticeTime                  = 30 * time.Second
)

func (c *containers) Tasks(context.Context) (desired, running int, err error) {
	c.peaks.Describes.add(c.clock.Now())
	return c.desired, c.alive, nil
}

func (c *containers) SetDesired(_ context.Context, n int) error {
	c.desired = n
	c.reach()
	return nil
}

// reach starts and stops tasks until the desired number runs.
func (c *containers) reach() {
	for ; c.alive+c.starting < c.desired && (c.most == 0 || c.alive+c.starting < c.most); c.starting++ {
		c.clock.After(between(c.random, shortestStart, longestStart), c.started)
	}
	c.notePeak()
	for _, one := range slices.Backward(c.workers) {
		if c.alive > c.desired && one.alive && len(one.holds) == 0 {
			one.kill()
		}
	}
	c.forgetDead()
}

// started turns a starting task into a worker if it is still wanted.
func (c *containers) started() {
	c.starting--
	if c.alive < c.desired && (c.most == 0 || c.alive < c.most) && !c.stopped {
		c.startWorker()
	}
}

func (c *containers) notePeak() { c.peaks.Tasks = max(c.peaks.Tasks, c.alive+c.starting) }

func (w *World) forgetDead() {
	w.workers = slices.DeleteFunc(w.workers, func(one *worker) bool { return !one.alive })
	for lane, idle := range w.idle {
		w.idle[lane] = slices.DeleteFunc(idle, func(one *worker) bool { return !one.alive || one.draining })
	}
}
