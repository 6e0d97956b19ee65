package webhook

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"cutroom/shared/domain/fault"
)

const SendTime = 10 * time.Second // the time that a receiver has to respond

const recordTime = 15 * time.Second

type Deliverer struct {
	Events  Events
	Store   Store
	Sender  Sender
	Secrets Secrets
	Now     func() time.Time
	// Random returns a number in [0, 1) for the jitter of retries.
	Random func() float64
	Logger *slog.Logger
}

// Deliver makes a due attempt and returns the next one, if any. If the attempt is already recorded,
// another caller has made it and will schedule the next one. After an error the attempt must be
// made again, even if only recording it failed. Receivers recognize the message by its id.
func (d *Deliverer) Deliver(ctx context.Context,
	scheduled ScheduledAttempt) (next ScheduledAttempt, follows bool, err error) {
	e, err := d.Events.event(ctx, scheduled.Event)
	if fault.Is(err, fault.NotFound) {
		return ScheduledAttempt{}, false, nil
	}
	if err != nil {
		return ScheduledAttempt{}, false, fmt.Errorf("webhook: %w", err)
	}
	made, err := d.Store.Attempts(ctx, e.ID)
	if err != nil {
		return ScheduledAttempt{}, false, fmt.Errorf("webhook: %w", err)
	}
	if len(made) != scheduled.Number-1 {
		return ScheduledAttempt{}, false, nil
	}
	a, err := d.attempt(ctx, e, scheduled.Number)
	if err != nil {
		return ScheduledAttempt{}, false, err
	}
	// Record the attempt even if the context has ended.
	recording, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTime)
	defer cancel()
	err = d.Store.Record(recording, e, a)
	if fault.Is(err, fault.Conflict) || fault.Is(err, fault.NotFound) {
		return ScheduledAttempt{}, false, nil
	}
	if err != nil {
		return ScheduledAttempt{}, false, fmt.Errorf("webhook: %w", err)
	}
	d.log(ctx, e.ID, a)
	return after(e.ID, e.Account, a), !a.Next.IsZero(), nil
}

// Follow returns the attempt after the given one, in case the caller stopped before scheduling it. follows is false
// if no attempt follows, or the next attempt has already been made.
func (d *Deliverer) Follow(ctx context.Context,
	scheduled ScheduledAttempt) (next ScheduledAttempt, follows bool, err error) {
	made, err := d.Store.Attempts(ctx, scheduled.Event)
	if err != nil {
		return ScheduledAttempt{}, false, fmt.Errorf("webhook: %w", err)
	}
	if len(made) != scheduled.Number {
		return ScheduledAttempt{}, false, nil
	}
	last := made[scheduled.Number-1]
	return after(scheduled.Event, scheduled.Account, last), !last.Next.IsZero(), nil
}

func after(event, account string, a Attempt) ScheduledAttempt {
	return ScheduledAttempt{Event: event, Account: account, Number: a.Number + 1, At: a.Next}
}

// Errors: the context's error, if the context ended the attempt early.
func (d *Deliverer) attempt(ctx context.Context, e Event, number int) (Attempt, error) {
	key, err := d.Secrets.key(ctx, e.Account)
	if err != nil {
		return Attempt{}, err
	}
	started := d.Now()
	m := Message{ID: MessageID(e.ID), At: started, Body: e.Body}
	m.Signature = Sign(key, m.ID, m.At, m.Body)

	sending, cancel := context.WithTimeout(ctx, SendTime)
	defer cancel()
	response, err := d.Sender.Send(sending, e.URL, m)
	if ctx.Err() != nil && err != nil {
		return Attempt{}, ctx.Err() // the receiver had no chance to respond
	}
	ended := d.Now()
	a := Attempt{Number: number, At: started, Duration: ended.Sub(started), Status: response.Status}
	var none NoResponse
	switch {
	case errors.As(err, &none):
		a.Error = none.Error()
	case err != nil:
		return Attempt{}, fmt.Errorf("webhook: send: %w", err)
	case delivered(response.Status):
		return a, nil
	case response.Status == statusGone:
		a.Error = "The receiver responded with status 410, so the message is not sent again."
	case response.Status >= leastRedirection && response.Status < leastClientError:
		a.Error = fmt.Sprintf("The receiver responded with a redirect (status %d). Redirects are not followed.", response.Status)
	default:
		a.Error = fmt.Sprintf("The receiver responded with status %d.", response.Status)
	}
	a.Next = nextAfter(a, ended, response.RetryAfter, d.Random())
	return a, nil
}

// log omits the URL, which may contain a secret.
func (d *Deliverer) log(ctx context.Context, event string, a Attempt) {
	level, what := slog.LevelInfo, "a webhook was delivered"
	if a.Error != "" {
		level, what = slog.LevelWarn, "a webhook attempt failed"
	}
	d.Logger.LogAttrs(ctx, level, what,
		slog.String("event", event), slog.Int("attempt", a.Number), slog.Int("status", a.Status),
		slog.Duration("duration", a.Duration), slog.Bool("last", a.Next.IsZero()))
}
