package webhook

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
)

// SendTime is how long a receiver may take for its answer.
const SendTime = 10 * time.Second

// recordTime is how long the record of an attempt may take.
const recordTime = 15 * time.Second

// Jobs finds jobs.
type Jobs interface {
	// Get gives the job.
	//
	// Errors: fault.NotFound.
	Get(ctx context.Context, id string) (job.Job, error)
}

// Deliverer makes attempts.
type Deliverer struct {
	Jobs    Jobs
	Store   Store
	Sender  Sender
	Secrets Secrets
	// Body writes the message about a job that has ended. It gives the same each
	// time, so that repetitions of a message differ in their time alone.
	Body func(job.Job) ([]byte, error)
	Now  func() time.Time
	// Random gives a number in [0, 1), which spreads repetitions.
	Random func() float64
	Logger *slog.Logger
}

// Deliver makes the attempt of a turn that is due, and gives the turn after it.
// It gives false where none follows: the message was delivered, or given up on, or
// there is nothing to tell any more. A turn whose attempt is recorded already was
// somebody else's to make, and so is what follows it.
//
// Errors: those of the stores; the attempt is then to be made again, also where
// only its record failed, as receivers know a message by its id.
func (d *Deliverer) Deliver(ctx context.Context, turn ScheduledAttempt) (next ScheduledAttempt, follows bool, err error) {
	j, err := d.Jobs.Get(ctx, turn.Job)
	if fault.Is(err, fault.NotFound) {
		return ScheduledAttempt{}, false, nil
	}
	if err != nil {
		return ScheduledAttempt{}, false, fmt.Errorf("webhook: %w", err)
	}
	if j.Webhook == "" || !j.Status.Terminal() {
		return ScheduledAttempt{}, false, nil
	}
	made, err := d.Store.Attempts(ctx, j.ID)
	if err != nil {
		return ScheduledAttempt{}, false, fmt.Errorf("webhook: %w", err)
	}
	if len(made) != turn.Number-1 {
		return ScheduledAttempt{}, false, nil
	}
	a, err := d.attempt(ctx, j, turn.Number)
	if err != nil {
		return ScheduledAttempt{}, false, err
	}
	// What was sent is recorded, also when the time for more is up.
	recording, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTime)
	defer cancel()
	err = d.Store.Record(recording, j, a)
	if fault.Is(err, fault.Conflict) || fault.Is(err, fault.NotFound) {
		return ScheduledAttempt{}, false, nil
	}
	if err != nil {
		return ScheduledAttempt{}, false, fmt.Errorf("webhook: %w", err)
	}
	d.tell(ctx, j.ID, a)
	return after(j.ID, j.Account, a), !a.Next.IsZero(), nil
}

// Follow gives the turn after one that was made, by Deliver or by somebody who may
// not have come to hand the next one on. It gives false where none follows, or it
// was made as well.
func (d *Deliverer) Follow(ctx context.Context, turn ScheduledAttempt) (next ScheduledAttempt, follows bool, err error) {
	made, err := d.Store.Attempts(ctx, turn.Job)
	if err != nil {
		return ScheduledAttempt{}, false, fmt.Errorf("webhook: %w", err)
	}
	if len(made) != turn.Number {
		return ScheduledAttempt{}, false, nil
	}
	last := made[turn.Number-1]
	return after(turn.Job, turn.Account, last), !last.Next.IsZero(), nil
}

// after gives the turn that follows an attempt.
func after(jobID, account string, a Attempt) ScheduledAttempt {
	return ScheduledAttempt{Job: jobID, Account: account, Number: a.Number + 1, At: a.Next}
}

// attempt sends the message about a job.
//
// Errors: the context's, when it ended the attempt before its time; the secret
// cannot be had.
func (d *Deliverer) attempt(ctx context.Context, j job.Job, number int) (Attempt, error) {
	key, err := d.Secrets.key(ctx, j.Account)
	if err != nil {
		return Attempt{}, err
	}
	body, err := d.Body(j)
	if err != nil {
		return Attempt{}, fmt.Errorf("webhook: write the message: %w", err)
	}
	begun := d.Now()
	m := Message{ID: MessageID(j.ID), At: begun, Body: body}
	m.Signature = Sign(key, m.ID, m.At, m.Body)

	sending, cancel := context.WithTimeout(ctx, SendTime)
	defer cancel()
	answer, err := d.Sender.Send(sending, j.Webhook, m)
	if ctx.Err() != nil && err != nil {
		return Attempt{}, ctx.Err() // the receiver had no chance
	}
	ended := d.Now()
	a := Attempt{Number: number, At: begun, Duration: ended.Sub(begun), Status: answer.Status}
	var none NoAnswer
	switch {
	case errors.As(err, &none):
		a.Error = none.Error()
	case err != nil:
		return Attempt{}, fmt.Errorf("webhook: send: %w", err)
	case delivered(answer.Status):
		return a, nil
	case answer.Status == statusGone:
		a.Error = "The receiver is gone; the message is not sent again."
	case answer.Status >= leastRedirection && answer.Status < leastClientError:
		a.Error = fmt.Sprintf("The receiver redirects with status %d, which is not followed.", answer.Status)
	default:
		a.Error = fmt.Sprintf("The receiver answered with status %d.", answer.Status)
	}
	a.Next = nextAfter(a, ended, answer.RetryAfter, d.Random())
	return a, nil
}

// tell logs an attempt. The URL is not in the log: it may hold a secret of its
// receiver's.
func (d *Deliverer) tell(ctx context.Context, jobID string, a Attempt) {
	level, what := slog.LevelInfo, "a webhook was delivered"
	if a.Error != "" {
		level, what = slog.LevelWarn, "an attempt at a webhook failed"
	}
	d.Logger.LogAttrs(ctx, level, what,
		slog.String("job", jobID), slog.Int("attempt", a.Number), slog.Int("status", a.Status),
		slog.Duration("duration", a.Duration), slog.Bool("last", a.Next.IsZero()))
}
