package sim

import (
	"context"
	"time"
)

// containers is the service of containers that the workers are tasks of. It implements
// fleet.Service.
type containers struct {
	world   *World
	desired int
	// starting are the tasks that have no container yet.
	starting int
	// most is how many can run, 0 for no bound: hardware may be scarce.
	most int
	// reads are the calls that ask how many there are to be.
	reads rates
}

// MostWorkers is the most that the option workerMax of a deploy allows, and MostOpen
// how many jobs of an account may be open (package dynamo).
const MostWorkers, MostOpen = 5000, 25_000

// How long a container takes to start.
const shortestStart, longestStart = time.Minute, 10 * time.Minute

// Tasks implements fleet.Service.
func (c *containers) Tasks(context.Context) (desired, running int, err error) {
	c.reads.add(c.world.clock.Now(), 1)
	return c.desired, c.world.running(), nil
}

// SetDesired implements fleet.Service.
func (c *containers) SetDesired(_ context.Context, n int) error {
	c.desired = n
	c.reach()
	return nil
}

// reach starts and stops tasks until there are as many as desired.
func (c *containers) reach() {
	w := c.world
	want := c.desired
	if c.most > 0 {
		want = min(want, c.most)
	}
	running := w.running()
	for ; running+c.starting < want; c.starting++ {
		w.clock.After(between(w.random, shortestStart, longestStart), c.started)
	}
	w.manyTasks()
	for i := len(w.fleetOf) - 1; i >= 0 && running > c.desired; i-- {
		if one := w.fleetOf[i]; one.alive && !one.working() {
			one.kill()
			running--
		}
	}
	w.prune()
}

// started is a container that has started.
func (c *containers) started() {
	c.starting--
	running := c.world.running()
	if running >= c.desired || c.most > 0 && running >= c.most || c.world.stopped {
		return
	}
	c.world.startWorker()
}

// prune forgets workers that have ended.
func (w *World) prune() {
	kept := w.fleetOf[:0]
	for _, one := range w.fleetOf {
		if one.alive {
			kept = append(kept, one)
		}
	}
	clear(w.fleetOf[len(kept):])
	w.fleetOf = kept
	for lane, idle := range w.idle {
		left := idle[:0]
		for _, s := range idle {
			if s.worker.alive && !s.worker.draining {
				left = append(left, s)
			}
		}
		w.idle[lane] = left
	}
}

// running returns how many workers run.
func (w *World) running() int { return w.aliveNow }
