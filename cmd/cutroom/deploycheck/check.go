// Package deploycheck goes through what only a deploy in an account can show: roles,
// queues, workers that start, API Gateway's own answers. It calls the deploy as its
// callers do, with keys of accounts of its own, looks at it as a deployer may, and takes
// its traces away when it ends.
package deploycheck

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/credential"
	domain "cutroom/shared/domain/job"
)

// Deploy says where a deploy is.
type Deploy struct {
	Stage string
	// MediaURL and InferenceURL are the base URLs of the services, RealtimeURL is that
	// of sessions, empty where there are none.
	MediaURL, InferenceURL, RealtimeURL string
	// StateMachine is the ARN of that of jobs, VideoQueue and ImageQueue the URLs of the
	// queues of its lanes, Bucket the name of the bucket of all blobs.
	StateMachine, VideoQueue, ImageQueue, Bucket string
}

// Cloud shows the parts of a deploy that its callers do not see.
type Cloud interface {
	// Workers returns how many workers are wanted, and how many run.
	Workers(ctx context.Context) (wanted, running int, err error)
	// DeadLetters returns how many messages each dead-letter queue has, by its name, in
	// flight or not.
	DeadLetters(ctx context.Context) (map[string]int, error)
	// Lifetimes returns the names of tables whose items should end by themselves and do
	// not.
	Lifetimes(ctx context.Context) (wrong []string, err error)
	// JobEnd returns when the record of a job ends by itself; zero means never.
	JobEnd(ctx context.Context, id string) (time.Time, error)
	// Alarms returns the states of the deploy's alarms by their names, without the
	// stage.
	Alarms(ctx context.Context) (map[string]string, error)
	// Forget deletes a revoked key.
	Forget(ctx context.Context, key credential.Key) error
	// Accept has a job accepted as the service would, with a deadline of the caller's.
	Accept(ctx context.Context, j domain.Job) error
	// Lose takes a job from its queue and begins a run of it, as a worker would that then
	// dies. It reports whether it was the first to take it.
	Lose(ctx context.Context, id string) (bool, error)
	// Runs returns how many runs of a job were counted.
	Runs(ctx context.Context, id string) (int, error)
	// Fire sets an alarm to the state ALARM, until CloudWatch looks at its metric again.
	Fire(ctx context.Context, alarm string) error
	// Story returns what became of an alarm since a time.
	Story(ctx context.Context, alarm string, since time.Time) (AlarmStory, error)
}

// AlarmStory is what an alarm did.
type AlarmStory struct {
	// Recovered reports whether it was in the state ALARM and is no longer.
	Recovered bool
	// Actions are what it does when it goes off, Done those that succeeded.
	Actions, Done int
	// Failure is why an action failed; empty if none did.
	Failure string
}

// Config says what to check and how. All fields but those of choices are required.
type Config struct {
	Deploy
	Cloud   Cloud
	Keys    credential.Store
	Catalog *catalog.Catalog
	// Random is what keys and the accounts' names are drawn from.
	Random io.Reader
	Now    func() time.Time
	// Poll is the time between two looks at something that takes long.
	Poll time.Duration
	// Report is told of each check as it ends.
	Report func(Result) error

	// Local leaves out what a local AWS cannot do.
	Local bool
	// FireAlarm sets an alarm off, which tells those who are told of alarms.
	FireAlarm bool
	// Receiver is a URL that answers POST with 2xx, which the deploy's webhooks may go
	// to; empty leaves the delivery out.
	Receiver string
	// UploadSize is the size of the large upload, in bytes.
	UploadSize int64
	// Crowd is how many jobs one account submits before the other's.
	Crowd int
	// StreamTime is how long a stream has to last, at least.
	StreamTime time.Duration
	// Only are the names of the checks to do; none means all.
	Only []string
}

// State is how a check ended.
type State string

// The states of a check.
const (
	Held    State = "held"
	Failed  State = "failed"
	Skipped State = "skipped"
)

// Result is what a check found.
type Result struct {
	Check   string  `json:"check"`
	State   State   `json:"state"`
	Seconds float64 `json:"seconds"`
	Detail  string  `json:"detail"`
	// Runbook and LogGroup say where to look if it failed: a section of docs/runbook.md
	// and a log group, which may be empty.
	Runbook  string `json:"runbook"`
	LogGroup string `json:"log_group"`
}

// Summary is what a whole run found.
type Summary struct {
	Held    int `json:"held"`
	Failed  int `json:"failed"`
	Skipped int `json:"skipped"`
	// Cost is what the run has cost at list price, in US dollars, as far as it can be
	// computed.
	Cost float64 `json:"cost_usd"`
	// Account is the account that the calls were made with.
	Account string `json:"account"`
}

// runbookPage is the page that says what to do.
const runbookPage = "docs/runbook.md"

// check checks one thing.
type check struct {
	name string
	// limit bounds it.
	limit time.Duration
	// runbook is a section of docs/runbook.md, group a log group with STAGE for the
	// stage.
	runbook, group string
	// needs says why a local AWS cannot have it; empty if it can.
	needs string
	run   func(context.Context, *visit) (detail string, err error)
}

// skipped means that a check could not be done, for a reason that is no fault.
type skipped struct{ why string }

func (s skipped) Error() string { return s.why }

func skip(format string, values ...any) error { return skipped{fmt.Sprintf(format, values...)} }

// Names returns the names of all checks, in their order.
func Names() []string {
	var names []string
	for _, c := range checks() {
		names = append(names, c.name)
	}
	return names
}

// Run does the checks one after another. Whatever happens, also if the context ends,
// the keys that it made are revoked and deleted, its files are deleted and its jobs
// cancelled.
//
// Errors: no key could be made; something is left; the context's; those of Report. That
// a check has failed is no error, but in the summary.
func Run(ctx context.Context, c Config) (Summary, error) {
	for _, only := range c.Only {
		if !slices.Contains(Names(), only) {
			return Summary{}, fmt.Errorf("there is no check %q", only)
		}
	}
	v, err := newVisit(c)
	if err != nil {
		return Summary{}, err
	}
	defer v.http.CloseIdleConnections()
	err = v.arrive(ctx)
	if err == nil {
		err = v.goThrough(ctx)
	}
	// An interrupt ends the checks, not the cleaning up.
	clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTime)
	defer cancel()
	if left := v.leave(clean); left != nil {
		err = errors.Join(err, fmt.Errorf("something is left of the account %s: %w", v.own.name, left))
	}
	v.summary.Cost, v.summary.Account = v.cost(), v.own.name
	return v.summary, err
}

// goThrough does the checks.
func (v *visit) goThrough(ctx context.Context) error {
	for _, c := range checks() {
		if !v.wanted(c.name) {
			continue
		}
		result := v.try(ctx, c)
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		switch result.State {
		case Held:
			v.summary.Held++
		case Failed:
			v.summary.Failed++
		case Skipped:
			v.summary.Skipped++
		}
		if err := v.Report(result); err != nil {
			return err
		}
	}
	return nil
}

func (v *visit) wanted(name string) bool {
	return len(v.Only) == 0 || slices.Contains(v.Only, name)
}

// try does a check within its limit.
func (v *visit) try(ctx context.Context, c check) Result {
	result := Result{
		Check: c.name, State: Held, Runbook: runbookPage + "#" + c.runbook,
		LogGroup: strings.ReplaceAll(c.group, "STAGE", v.Stage),
	}
	if v.Local && c.needs != "" {
		result.State, result.Detail = Skipped, "a local AWS "+c.needs
		return result
	}
	bounded, cancel := context.WithTimeoutCause(ctx, c.limit, fmt.Errorf("it did not end within %s", c.limit))
	defer cancel()
	began := v.Now()
	detail, err := c.run(bounded, v)
	result.Seconds = v.Now().Sub(began).Seconds()
	result.Detail = detail
	var omitted skipped
	switch {
	case errors.As(err, &omitted):
		result.State, result.Detail = Skipped, omitted.why
	case err != nil && bounded.Err() != nil:
		// What it was about says more than that its time is over.
		result.State, result.Detail = Failed, fmt.Sprintf("%v: %v", context.Cause(bounded), err)
	case err != nil:
		result.State, result.Detail = Failed, err.Error()
	}
	return result
}
