package sim

import (
	"context"
	"log/slog"
	"time"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/file"
	"cutroom/shared/domain/job"
	"cutroom/shared/domain/ratelimit"
)

// instance is one running instance of a function, with caches of its own. It serves one call
// at a time.
type instance struct {
	auth    *credential.Authenticator
	rates   *dynamo.Rates
	jobs    *job.Service
	files   *file.Service
	workers *dynamo.Workers
	// freeSince is when its last call ended.
	freeSince time.Time
}

// functionIdle is after how long without a call an instance is ended. AWS does not say; minutes
// are what is seen.
const functionIdle = 10 * time.Minute

// begin lets an instance of a function serve a call until done is called: the one that was
// free last, or a new one.
func (w *World) begin(function string) (i *instance, done func()) {
	free := w.free[function]
	for len(free) > 0 && w.clock.Now().Sub(free[0].freeSince) > functionIdle {
		free = free[1:]
	}
	if last := len(free) - 1; last >= 0 {
		i, free = free[last], free[:last]
	} else {
		i = w.newInstance(function)
		w.most.made[function]++
	}
	w.free[function] = free
	release := w.occupy(function)
	return i, func() {
		release()
		i.freeSince = w.clock.Now()
		w.free[function] = append(w.free[function], i)
	}
}

// serve is begin of a call that takes so long.
func (w *World) serve(function string, length time.Duration) *instance {
	i, done := w.begin(function)
	w.clock.After(length, done)
	return i
}

// newInstance starts an instance, with what its function has.
func (w *World) newInstance(function string) *instance {
	s, now := w.service, w.clock.Now
	i := &instance{
		auth:  credential.NewAuthenticator(s.keys, s.tiers, now),
		rates: dynamo.NewRates(s.client, "usage", now, w.newID), workers: dynamo.NewWorkers(s.client, "jobs", now),
	}
	if function == "inference" {
		return i
	}
	i.files = w.newFiles(s.files)
	if function == "files" || function == "arrived" {
		return i
	}
	dispatch := dispatcher{s.machine, i.workers}
	store := dynamo.NewJobs(s.runs, dispatch, s.lengths, now)
	i.jobs = job.NewService(job.Config{
		Store: store, RunTimes: store, Lines: store, Now: now, Random: randomBytes{w.random}, SpreadBlobs: true,
		Workers: map[job.Lane]int{job.VideoLane: w.rules.Max, job.ImageLane: w.rules.Max},
		Cursors: job.NewCursors(simulatedSecret()), Orchestrator: dispatch, Logger: slog.New(slog.DiscardHandler),
		Budgets: budget.NewKeeper(budget.KeeperConfig{
			Store: s.budgets, Machine: machine{w.clock}, Now: now, NewID: w.newID, Logger: slog.New(slog.DiscardHandler),
		}),
		Estimates: dynamo.NewEstimates(s.client, "jobs"), RecordAge: recordAge,
	})
	return i
}

// recordAge is how long the records of jobs are kept.
const recordAge = 7 * 24 * time.Hour

// authenticate finds the caller and counts its call.
func (i *instance) authenticate(ctx context.Context, account *Account) (credential.Principal, error) {
	who, err := i.auth.Authenticate(ctx, account.secret)
	if err != nil {
		return who, err
	}
	rate := ratelimit.Rate{PerSecond: who.Tier.RequestsPerSecond, Burst: who.Tier.Burst}
	state, err := i.rates.Take(ctx, "requests/"+who.Account(), 1, rate)
	if err == nil && !state.Allowed {
		err = fault.New(fault.Limited, "too many requests")
	}
	return who, err
}

// How long calls hold their functions, without the time that they wait for something else.
// These were measured under the Lambda Runtime API.
const (
	submitTime     = 25 * time.Millisecond
	statusTime     = 3 * time.Millisecond
	contentTime    = 8 * time.Millisecond
	wakeTime       = time.Millisecond
	uploadTime     = 30 * time.Millisecond
	announceTime   = 9 * time.Millisecond
	arrivedTime    = 11 * time.Millisecond
	completionTime = 10 * time.Millisecond
)
