package sim

import (
	"context"
	"fmt"
	"time"

	"cutroom/shared/domain/file"
	"cutroom/shared/domain/job"
	"cutroom/shared/domain/ratelimit"
	"cutroom/shared/domain/session"
	"cutroom/shared/domain/usage"
)

const (
	page = 20
	// signedUpload is the mean time until all bytes of a signed upload have arrived.
	signedUpload = 3 * time.Second
	// sessionLength is the mean length of a realtime session; eachInstance is the number of sessions per instance.
	sessionLength = 3 * time.Minute
	eachInstance  = 50
	renewEvery    = 15 * time.Second
)

func (w *World) completion() {
	a := w.choose()
	i := w.serve("inference", completionTime+between(w.random, time.Second, 20*time.Second))
	w.counts.count("completions", w.complete(i, a))
}

func (w *World) complete(i *instance, a *account) error {
	ctx := context.Background()
	who, err := i.auth.Authenticate(ctx, a.secret)
	if err != nil {
		return err
	}
	requests, tokens := ratelimit.PerMinute(1e7), ratelimit.PerMinute(1e9)
	if _, err := i.rates.Take(ctx, "inference-requests/"+a.name, 1, requests); err != nil {
		return err
	}
	if _, err := i.rates.Take(ctx, "inference-tokens/"+a.name, 0, tokens); err != nil {
		return err
	}
	used := int64(200 + w.random.IntN(1000))
	if _, err := i.rates.Charge(ctx, "inference-tokens/"+a.name, int(used), tokens); err != nil {
		return err
	}
	return w.service.usage.Add(ctx, []usage.Record{{
		ID: w.newID(), Account: a.name, Key: who.Key.ID, Model: "chat", Day: usage.DayOf(w.clock.Now()),
		Counts: usage.Counts{Requests: 1, PromptTokens: used / 2, CompletionTokens: used / 2},
	}})
}

func (w *World) upload() {
	a, signed, ctx := w.choose(), w.random.IntN(2) == 0, context.Background()
	f := file.File{
		Account: a.name, Key: a.name, Filename: "clip.mp4", MIME: "video/mp4", Size: 2_345_678, MD5: w.newID(),
		Lifetime: file.DefaultLifetime,
	}
	took := uploadTime
	if signed {
		took = announceTime
	}
	i := w.serve("files", took)
	who, err := i.authenticate(ctx, a)
	switch {
	case err != nil:
	case signed:
		f, err = i.files.CreatePending(ctx, f, who.Tier.StoredBytes, who.Tier.Uploads)
	default:
		if f.Blob, err = i.files.NewBlob(); err == nil {
			_, err = i.files.Create(ctx, f, who.Tier.StoredBytes)
		}
	}
	if err != nil || !signed {
		w.counts.count("uploads", err)
		return
	}
	w.clock.After(between(w.random, 0, 2*signedUpload), func() {
		_, err := w.serve("arrived", arrivedTime).files.Finalize(ctx, f, f.MIME)
		w.counts.count("uploads", err)
	})
}

func (w *World) list() {
	a, ctx, function := w.choose(), context.Background(), "jobs"
	if w.random.IntN(3) == 0 {
		function = "files"
	}
	i := w.serve(function, statusTime)
	_, err := i.authenticate(ctx, a)
	switch {
	case err != nil:
	case function == "files":
		_, _, err = i.files.List(ctx, a.name, "", page)
	default:
		_, _, err = i.jobs.List(ctx, a.name, job.Filter{}, "", page)
	}
	w.counts.count("pages of lists", err)
}

// startRealtime starts as many realtime instances as the busiest time needs.
func (w *World) startRealtime() error {
	need := rate(float64(w.Jobs)*sessionsEach, peakAt) * sessionLength.Seconds()
	for range 1 + int(1.5*need)/eachInstance {
		epoch := w.newID()
		if err := w.service.sessions.Begin(context.Background(), epoch, "10.0.0.1:8080"); err != nil {
			return fmt.Errorf("sim: start a lease: %w", err)
		}
		w.epochs = append(w.epochs, epoch)
		var renew func()
		renew = func() {
			if !w.closed {
				_ = w.service.sessions.Renew(context.Background(), epoch) // the next renewal tries again
				w.clock.After(renewEvery, renew)
			}
		}
		w.clock.After(between(w.random, 0, renewEvery), renew)
	}
	return nil
}

func (w *World) session() {
	a := w.choose()
	slot := session.Slot{ID: "session_" + w.newID(), Account: a.name, Epoch: w.epochs[w.random.IntN(len(w.epochs))]}
	err := w.service.sessions.Take(context.Background(), slot, a.sessions)
	if w.counts.count("sessions", err); err != nil {
		return
	}
	w.clock.After(exponential(w.random, sessionLength), func() {
		_ = w.service.sessions.Free(context.Background(), slot) // the slot also becomes free when the lease expires
	})
}
