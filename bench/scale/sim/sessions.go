package sim

import (
	"context"
	"fmt"
	"time"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/session"
)

const (
	// sessionLength is the mean length of a realtime session, and sessionsEachInstance how
	// many an instance serves.
	sessionLength        = 3 * time.Minute
	sessionsEachInstance = 50
)

// realtime is a fleet of instances that serve sessions.
type realtime struct {
	*World
	epochs []string
}

// start begins the leases of as many instances as the peak needs.
func (r *realtime) start() error {
	need := rate(float64(r.Jobs)*sessionsEach, peakAt) * sessionLength.Seconds()
	for range 1 + int(1.5*need)/sessionsEachInstance {
		if err := r.begin(len(r.epochs)); err != nil {
			return err
		}
	}
	return nil
}

// begin begins the lease of an instance, and renews it until another takes its place.
func (r *realtime) begin(place int) error {
	epoch := r.newID()
	if err := r.service.sessions.Begin(context.Background(), epoch, "10.0.0.1:8080"); err != nil {
		return fmt.Errorf("sim: begin a lease: %w", err)
	}
	if place == len(r.epochs) {
		r.epochs = append(r.epochs, epoch)
	}
	r.epochs[place] = epoch
	var renew func()
	renew = func() {
		if r.closed || r.epochs[place] != epoch {
			return
		}
		_ = r.service.sessions.Renew(context.Background(), epoch) // the next renewal repeats it
		r.clock.After(15*time.Second, renew)
	}
	r.clock.After(between(r.random, 0, 15*time.Second), renew)
	return nil
}

// connect is a client that opens a session and closes it.
func (r *realtime) connect() {
	account := r.chooser.choose(r.random)
	place := r.random.IntN(len(r.epochs))
	slot := session.Slot{ID: "session_" + r.newID(), Account: account.Name, Epoch: r.epochs[place]}
	r.count.connects++
	if slot.Epoch == "" { // the instance was lost, and nothing has noticed yet
		r.count.sessionsRefused[string(fault.Unavailable)]++
		return
	}
	limit := r.sessionLimits[account.Name]
	if err := r.service.sessions.Take(context.Background(), slot, limit); err != nil {
		r.count.sessionsRefused[refusalOf(err)]++
		return
	}
	r.clock.After(exponential(r.random, sessionLength), func() {
		if r.epochs[place] == slot.Epoch {
			_ = r.service.sessions.Free(context.Background(), slot) // the lease's end frees it
		}
	})
}

// lose ends the instances of a zone without a word, and starts others a minute later.
func (r *realtime) lose(zone int) {
	for place := range r.epochs {
		if place%zones == zone {
			r.epochs[place] = ""
			r.clock.After(time.Minute, func() { _ = r.begin(place) }) // it began before
		}
	}
}
