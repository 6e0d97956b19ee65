package sim

import "time"

// zones is how many zones of availability the workers and instances are in.
const zones = 3

// Faults says what goes wrong during a simulated day.
type Faults struct {
	// Zone loses all workers and realtime instances of one zone, at the noon wave.
	Zone bool
	// Twice is the part of messages that queues deliver twice, and Late the part that
	// arrives up to two minutes late.
	Twice, Late float64
	// Scarce lets only half of the workers run for an hour.
	Scarce bool
	// Deploy replaces all workers within ten minutes.
	Deploy bool
	// Throttle makes partitions of tables refuse what is beyond their capacity.
	Throttle bool
}

// AllFaults are those of a bad day.
func AllFaults() Faults {
	return Faults{Zone: true, Twice: 0.01, Late: 0.01, Scarce: true, Deploy: true, Throttle: true}
}

// When they happen.
const (
	zoneLostAt = 14*time.Hour + 5*time.Minute
	scarceAt   = 10 * time.Hour
	deployAt   = 16 * time.Hour
	lateness   = 2 * time.Minute
)

// plan schedules the faults.
func (w *World) plan(f Faults) {
	w.cloud.DynamoDB.Limit(f.Throttle)
	w.cloud.SQS.Twice, w.cloud.SQS.Late, w.cloud.SQS.Lateness = f.Twice, f.Late, lateness
	at := func(when time.Duration, happen func()) {
		if wait := when - w.clock.Since(); wait >= 0 {
			w.clock.After(wait, happen)
		}
	}
	if f.Zone {
		at(zoneLostAt, func() { w.loseZone(1) })
	}
	if f.Scarce {
		at(scarceAt, func() { w.containers.most = max(1, w.rules.Max/2) })
		at(scarceAt+time.Hour, func() {
			w.containers.most = 0
			w.containers.reach()
		})
	}
	if f.Deploy {
		at(deployAt, w.deploy)
	}
}

// loseZone ends everything in a zone without a word. The containers' service notices.
func (w *World) loseZone(zone int) {
	for _, one := range w.fleetOf {
		if one.zone == zone {
			one.kill()
		}
	}
	w.prune()
	w.realtime.lose(zone)
	w.clock.After(30*time.Second, w.containers.reach)
}

// deploy replaces the workers one after another within ten minutes. A new one takes a
// minute to start: its image is there.
func (w *World) deploy() {
	for i, one := range append([]*worker(nil), w.fleetOf...) {
		w.clock.After(time.Duration(i)*10*time.Minute/time.Duration(len(w.fleetOf)), func() {
			if !one.alive {
				return
			}
			one.drain()
			w.prune()
			w.clock.After(time.Minute, func() {
				if w.running() < w.containers.desired {
					w.startWorker()
				}
			})
		})
	}
}
