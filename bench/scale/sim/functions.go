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

// instance is a function instance with its own caches. It serves one request at a time.
type instance struct {
	auth    *credential.Authenticator
	rates   *dynamo.Rates
	jobs    *job.Service
	files   *file.Service
	workers *dynamo.Workers
	// freeSince is the time at which the instance's last request ended.
	freeSince time.Time
}

// functionIdle is the lifetime of an idle instance, as observed. AWS does not document it.
const functionIdle = 10 * time.Minute

// Each constant is the time that one request of this type occupies its function, without waiting for other requests.
// They were measured under the Lambda Runtime API.
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

// begin lets an instance of a function serve a request until done is called. It uses the instance
// that became idle last, or a new one. All requests except "arrived" count as API requests.
func (w *World) begin(function string) (i *instance, done func()) {
	if function != "arrived" {
		w.peaks.Requests.add(w.clock.Now())
	}
	free := w.free[function]
	for len(free) > 0 && w.clock.Now().Sub(free[0].freeSince) > functionIdle {
		free = free[1:]
	}
	if last := len(free) - 1; last >= 0 {
		i, free = free[last], free[:last]
	} else {
		i = w.newInstance(function)
	}
	w.free[function] = free
	release := w.occupy()
	return i, func() {
		release()
		i.freeSince = w.clock.Now()
		w.free[function] = append(w.free[function], i)
	}
}

// serve is like begin, for a request of known duration.
func (w *World) serve(function string, length time.Duration) *instance {
	i, done := w.begin(function)
	w.clock.After(length, done)
	return i
}

func (w *World) occupy() (done func()) {
	w.lambdas++
	w.peaks.Lambdas = max(w.peaks.Lambdas, w.lambdas)
	return func() { w.lambdas-- }
}

func (w *World) newInstance(function string) *instance {
	s, now, secret := w.service, w.clock.Now, []byte("a secret of the simulation only.")
	i := &instance{
		auth:    credential.NewAuthenticator(s.keys, s.tiers, now),
		rates:   dynamo.NewRates(s.client, "usage", now, w.newID),
		workers: dynamo.NewWorkers(s.client, "jobs", now),
	}
	switch function {
	case "inference":
		return i
	case "files", "arrived":
		i.files = file.NewService(file.Config{
			Store: s.files, IDs: file.NewIDs(now, randomBytes{w.random}), SpreadBlobs: true,
			Cursors: file.NewCursors(secret), Now: now,
		})
		return i
	}
	dispatch := dispatcher{s.machine, i.workers}
	store := dynamo.NewJobs(s.runs, dispatch, s.lengths, now)
	i.jobs = job.NewService(job.Config{
		Store: store, RunTimes: store, Queues: store, Now: now, Random: randomBytes{w.random}, SpreadBlobs: true,
		Workers: map[job.Lane]int{job.VideoLane: w.rules.Max, job.ImageLane: w.rules.Max},
		Cursors: job.NewCursors(secret), Orchestrator: dispatch, Logger: slog.New(slog.DiscardHandler),
		Budgets: budget.NewManager(budget.ManagerConfig{
			Store: s.budgets, Machine: machine{w.clock}, Now: now, NewID: w.newID, Logger: slog.New(slog.DiscardHandler),
		}),
		Estimates: dynamo.NewEstimates(s.client, "jobs"), RecordAge: 7 * 24 * time.Hour,
	})
	return i
}

func (i *instance) authenticate(ctx context.Context, a *account) (credential.Principal, error) {
	who, err := i.auth.Authenticate(ctx, a.secret)
	if err != nil {
		return who, err
	}
	limit := ratelimit.Rate{PerSecond: who.Tier.RequestsPerSecond, Burst: who.Tier.Burst}
	state, err := i.rates.Take(ctx, "requests/"+who.Account(), 1, limit)
	if err == nil && !state.Allowed {
		err = fault.New(fault.Limited, "too many requests")
	}
	return who, err
}
