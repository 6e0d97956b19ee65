package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"time"

	"cutroom/shared/adapter/diskblob"
	"cutroom/shared/adapter/sqlite"
	"cutroom/shared/domain/blob"
	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/job"
	"cutroom/shared/engine"
	"cutroom/shared/engine/engineserver"
	"cutroom/shared/engine/ffmpeg"
	"cutroom/shared/service/worker"
)

const (
	// workerRuns is the number of jobs, and workerEdit is the time that each edit takes. The overhead does not grow
	// with the length of the edit.
	workerRuns = 8
	workerEdit = time.Second
	// workerPart is the bar for the worker's overhead, as a fraction of the engine's time.
	workerPart = 0.005
	// slowStore is the latency of a distant blob store.
	slowStore = 150 * time.Millisecond
)

// worker makes an engine server process a queue. It measures the time from the start of the first edit to the end of
// the last. The floor is the time of the same edits requested in sequence, without queue, records and blobs. The
// engine server only waits, so the difference is its idle time.
func (b *bench) worker(ctx context.Context) error {
	pipeline := &pipeline{}
	server := httptest.NewServer(pipeline)
	defer server.Close()
	edits, err := engineserver.New(engineserver.Config{URL: server.URL})
	if err != nil {
		return err
	}
	bare, err := pipeline.bare(ctx, b, edits)
	if err != nil {
		return err
	}
	for _, c := range []struct {
		what     string
		prefetch bool
		slow     bool
		bar      bool
	}{
		{"worker, fetching ahead", true, false, true},
		{"  and a store that takes 150 ms", true, true, true},
		{"worker, fetching when the engine is free", false, false, false},
		{"  and a store that takes 150 ms", false, true, false},
	} {
		took, err := pipeline.byWorker(ctx, b, edits, c.prefetch, c.slow)
		if err != nil {
			return err
		}
		part := took.Seconds()/bare.Seconds() - 1
		r := row{
			what: c.what, measured: short(took / workerRuns), floor: short(bare/workerRuns) + " engine alone",
			ratio: fmt.Sprintf("%+.1f %%", 100*part), bar: "-", verdict: noBar,
		}
		if c.bar {
			r.bar, r.verdict = "0.5 %", verdictOf(part <= workerPart)
		}
		b.table.add(r)
	}
	return nil
}

type pipeline struct {
	mu          sync.Mutex
	begun, done time.Time
}

func (p *pipeline) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	begun := time.Now()
	var asked engineserver.Request
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		http.Error(w, err.Error(), http.StatusUnprocessableEntity)
		return
	}
	p.mu.Lock()
	if p.begun.IsZero() {
		p.begun = begun
	}
	p.mu.Unlock()
	const steps = 10
	lines := json.NewEncoder(w)
	for step := range steps {
		fraction := float64(step) / steps
		_ = lines.Encode(engineserver.Line{Progress: &fraction, Stage: "denoise"}) // fails if the client is gone
		_ = http.NewResponseController(w).Flush()
		time.Sleep(workerEdit / steps)
	}
	const video = "\x00\x00\x00\x18ftypisom\x00\x00\x02\x00isommp42"
	if err := os.WriteFile(asked.Output, []byte(video), 0o600); err != nil {
		_ = lines.Encode(engineserver.Line{Error: &engineserver.Failure{Code: job.EngineError, Message: err.Error()}})
		return
	}
	p.mu.Lock()
	p.done = time.Now()
	p.mu.Unlock()
	_ = lines.Encode(engineserver.Line{Result: &engineserver.Result{Bytes: int64(len(video))}})
}

// took returns the time from the first edit's start to the last edit's end, counting only edits
// since took was last called.
func (p *pipeline) took() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	took := p.done.Sub(p.begun)
	p.begun = time.Time{}
	return took
}

func (p *pipeline) bare(ctx context.Context, b *bench, edits engine.Engine) (time.Duration, error) {
	scratch, err := os.MkdirTemp(b.folder, "pipeline-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(scratch)
	for range workerRuns {
		spec := engine.Spec{Model: benchModel, Kind: catalog.Edit, Folder: scratch,
			Output: filepath.Join(scratch, "output.mp4")}
		if _, err := edits.Run(ctx, spec, func(engine.Progress) {}); err != nil {
			return 0, err
		}
	}
	return p.took(), nil
}

type distant struct{ blob.Store }

func (d distant) Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	time.Sleep(slowStore)
	return d.Store.Open(ctx, name, offset, length)
}

func (d distant) Put(ctx context.Context, name string, r io.Reader) (int64, error) {
	time.Sleep(slowStore)
	return d.Store.Put(ctx, name, r)
}

func (p *pipeline) byWorker(ctx context.Context, b *bench, edits *engineserver.Engine, prefetch,
	slow bool) (time.Duration, error) {
	data, err := os.MkdirTemp(b.folder, "worker-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(data)
	known, err := catalog.Default("gen")
	if err != nil {
		return 0, err
	}
	tools, err := ffmpeg.Find(ctx, known.Limits)
	if err != nil {
		return 0, err
	}
	kept, err := sqlite.Open(ctx, filepath.Join(data, "cutroom.db"), sqlite.Options{Now: time.Now})
	if err != nil {
		return 0, err
	}
	defer kept.Close()
	var blobs blob.Store
	if blobs, err = diskblob.Open(filepath.Join(data, "blobs")); err != nil {
		return 0, err
	}
	service := job.NewService(job.Config{Store: kept.Jobs(), Now: time.Now, Random: rand.Reader})
	ids, err := b.submitClips(ctx, service, kept.Jobs(), blobs)
	if err != nil {
		return 0, err
	}
	if slow {
		blobs = distant{blobs}
	}
	w := worker.New(worker.Config{
		Queue: kept.Queue(), Runs: kept.Jobs(), Blobs: blobs, Engine: edits, Catalog: known, Folder: data,
		Slots: map[job.Lane]int{job.VideoLane: 1}, Prefetch: prefetch, Now: time.Now, Random: rand.Reader,
		Logger: slog.New(slog.DiscardHandler),
		Tools:  worker.Tools{Prober: tools},
		Pace:   worker.Pace{Lease: 30 * time.Second, ProgressEvery: time.Second},
	})
	working, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { w.Run(working) })
	defer running.Wait()
	defer stop()
	for _, id := range ids {
		if err := awaitCompletion(ctx, kept.Jobs(), id); err != nil {
			return 0, err
		}
	}
	return p.took(), nil
}

func awaitCompletion(ctx context.Context, jobs job.Store, id string) error {
	for {
		j, err := jobs.Get(ctx, id)
		switch {
		case err != nil:
			return err
		case j.Status == job.Failed:
			return errors.New(j.Failure.Message)
		case j.Status == job.Completed:
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (b *bench) submitClips(ctx context.Context, service *job.Service, jobs job.Store,
	blobs blob.Store) (ids []string, err error) {
	for range workerRuns {
		id, err := service.NewID()
		if err != nil {
			return nil, err
		}
		clip, err := os.Open(b.clip)
		if err != nil {
			return nil, err
		}
		name := job.InputBlob(id, "data")
		size, err := blobs.Put(ctx, name, clip)
		clip.Close()
		if err != nil {
			return nil, err
		}
		now := time.Now().UTC().Truncate(time.Millisecond)
		if err := jobs.Accept(ctx, job.Job{
			ID: id, Account: "bench", Model: benchModel, Lane: job.VideoLane, Status: job.Pending, CreatedAt: now,
			Deadline: now.Add(job.MaxAge),
			Request: job.Request{Options: map[string]any{"resolution": "720p"},
				Inputs: map[string]job.Input{"data": {Blob: name, MIME: "video/mp4", Size: size}}},
		}, 0); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}
