package sim

import (
	"slices"
	"time"
)

const zones = 3

const lateness = 2 * time.Minute

// plan schedules the failures for the day, or for a window of the given length that begins now. In a window, they
// occur in the middle.
func (w *World) plan(length time.Duration) {
	if !w.Failures {
		return
	}
	now := w.clock.sinceMidnight()
	scarceAt, scarceFor := 10*time.Hour+10*time.Minute, time.Hour
	zoneAt, deployAt, deployFor := peakAt, 16*time.Hour, 10*time.Minute
	if w.Window > 0 {
		scarceAt, scarceFor = now+length*3/8, min(scarceFor, length)
		zoneAt, deployAt, deployFor = now+length/2, now+length*5/8, min(deployFor, length/4)
	}
	w.clock.After(scarceAt-now, func() { w.makeScarce(scarceFor) })
	w.clock.After(zoneAt-now, w.loseZone)
	w.clock.After(deployAt-now, func() { w.deploy(deployFor) })
}

// makeScarce kills a quarter of the workers. For the given time, no new worker can start.
func (w *World) makeScarce(length time.Duration) {
	w.forgetDead()
	for i, one := range w.workers {
		if i%4 == 0 {
			one.kill()
		}
	}
	w.containers.most = max(1, w.alive)
	w.clock.After(noticeTime, w.containers.reach)
	w.clock.After(length, func() {
		w.containers.most = 0
		w.containers.reach()
	})
}

// loseZone kills all workers in the zone of a worker with a job. It waits until such a worker exists.
func (w *World) loseZone() {
	w.forgetDead()
	busy := slices.IndexFunc(w.workers, func(one *worker) bool { return len(one.holds) > 0 })
	if busy < 0 {
		w.clock.After(time.Second, w.loseZone)
		return
	}
	for _, one := range w.workers {
		if one.zone == w.workers[busy].zone {
			one.kill()
		}
	}
	w.clock.After(noticeTime, w.containers.reach)
}

// deploy replaces the workers one after another. ECS starts a new worker before it stops the old one.
func (w *World) deploy(length time.Duration) {
	all := append([]*worker(nil), w.workers...)
	for i, one := range all {
		w.clock.After(time.Duration(i)*length/time.Duration(len(all)), func() {
			if one.alive {
				one.drain()
				w.startWorker()
			}
		})
	}
}
