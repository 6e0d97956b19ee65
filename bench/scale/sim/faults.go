package sim

import "time"

// zones is how many zones of availability the workers and instances are in.
const zones = 3

// Faults says what goes wrong during a simulated day.
type Faults struct {
	// Zone loses all workers and realtime instances of one zone.
	Zone bool
	// Twice is the part of messages that queues deliver twice, and Late the part that
	// arrives up to two minutes late.
	Twice, Late float64
	// Scarce takes a quarter of the workers that run, and lets no others run in their place
	// for an hour.
	Scarce bool
	// Deploy replaces all workers one after another.
	Deploy bool
	// Throttle makes partitions of tables refuse what is beyond their capacity.
	Throttle bool
}

// AllFaults are those of a bad day.
func AllFaults() Faults {
	return Faults{Zone: true, Twice: 0.01, Late: 0.01, Scarce: true, Deploy: true, Throttle: true}
}

// Fault is something that went wrong, and for how long.
type Fault struct {
	What   string
	At     time.Duration
	Length time.Duration
}

// span is when a fault begins and how long it lasts.
type span struct{ at, length time.Duration }

// When they happen in a day: each at a time at which the fleet has grown.
var ofDay = struct{ scarce, zone, deploy span }{
	scarce: span{10*time.Hour + 10*time.Minute, time.Hour},
	zone:   span{14*time.Hour + 10*time.Minute, 0},
	deploy: span{16 * time.Hour, 10 * time.Minute},
}

// lateness is how late messages are at the most.
const lateness = 2 * time.Minute

// bear makes the cloud have the faults that are there all the time.
func (w *World) bear(f Faults) {
	w.cloud.DynamoDB.Limit(f.Throttle)
	w.cloud.SQS.Twice, w.cloud.SQS.Late, w.cloud.SQS.Lateness = f.Twice, f.Late, lateness
}

// plan schedules the others.
// In a window of the length, which begins now, they begin in its middle, and what lasts longer
// than what is left of it ends in the time without load.
func (w *World) plan(f Faults, length time.Duration) {
	when := ofDay
	if w.Window > 0 {
		now := w.clock.Since()
		when.scarce = span{now + length*3/8, min(time.Hour, length)}
		when.zone = span{now + length/2, 0}
		when.deploy = span{now + length*5/8, min(10*time.Minute, length/4)}
	}
	plan := func(planned bool, what string, s span, happen func(time.Duration)) {
		if !planned {
			return
		}
		w.faults = append(w.faults, Fault{what, s.at, s.length})
		w.clock.After(s.at-w.clock.Since(), func() { happen(s.length) })
	}
	plan(f.Scarce, "a quarter of the workers is taken, and not replaced", when.scarce, w.makeScarce)
	plan(f.Zone, "a zone is lost", when.zone, func(time.Duration) { w.loseZone(w.busiestZone()) })
	plan(f.Deploy, "a deploy replaces the workers", when.deploy, w.deploy)
}

// makeScarce ends a quarter of the workers without a word, and bounds their number by what is
// left.
func (w *World) makeScarce(length time.Duration) {
	taken := (w.running() + 3) / 4
	w.containers.most = max(1, w.running()-taken)
	for i, one := range w.fleetOf {
		if i%4 == 0 && taken > 0 && one.alive {
			one.kill()
			taken--
		}
	}
	w.prune()
	w.clock.After(noticeTime, w.containers.reach)
	w.clock.After(length, func() {
		w.containers.most = 0
		w.containers.reach()
	})
}

// busiestZone returns the zone with the most workers.
func (w *World) busiestZone() int {
	var workers [zones]int
	most := 0
	for _, one := range w.fleetOf {
		if one.alive {
			workers[one.zone]++
		}
	}
	for zone, n := range workers {
		if n > workers[most] {
			most = zone
		}
	}
	return most
}

// noticeTime is how long the containers' service takes to notice that tasks have gone.
const noticeTime = 30 * time.Second

// loseZone ends everything in a zone without a word. The containers' service notices.
func (w *World) loseZone(zone int) {
	for _, one := range w.fleetOf {
		if one.zone == zone {
			one.kill()
		}
	}
	w.prune()
	w.realtime.lose(zone)
	w.clock.After(noticeTime, w.containers.reach)
}

// deploy replaces the workers one after another. ECS starts the new ones before it stops the
// old ones.
func (w *World) deploy(length time.Duration) {
	all := append([]*worker(nil), w.fleetOf...)
	for i, one := range all {
		w.clock.After(time.Duration(i)*length/time.Duration(len(all)), func() {
			if one.alive {
				one.drain()
				w.startWorker()
			}
		})
	}
}
