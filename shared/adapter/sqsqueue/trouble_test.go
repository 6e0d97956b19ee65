package sqsqueue_test

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"cutroom/shared/adapter/diskblob"
	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/adapter/sqsqueue"
	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/job"
	"cutroom/shared/engine"
	"cutroom/shared/service/worker"
	"cutroom/shared/testkit/await"
	"cutroom/shared/testkit/awstest"
)

type writer struct{}

func (writer) Run(_ context.Context, spec engine.Spec, _ func(engine.Progress)) (engine.Outcome, error) {
	return engine.Outcome{}, os.WriteFile(spec.Output, []byte(spec.Job), 0o600)
}

// Any call by the service, the workers or AWS may fail. Each job must still get its own result.
func TestNoAcceptedJobIsLostOrDuplicated(t *testing.T) {
	t.Parallel()
	const (
		submitters = 4
		jobsEach   = 8
		limit      = submitters * jobsEach
	)
	cloud := local.Cloud(t)
	proxy := cloud.Proxy(t, 7, awstest.Faults{
		Throttled: 0.08, Failed: 0.05, LostCalls: 0.05, LostAnswers: 0.08, Silent: 0.004, Slow: 0.05,
	})
	h := newHomeBehind(t, cloud, proxy.Config())
	blobs, err := diskblob.Open(filepath.Join(t.TempDir(), "blobs"))
	if err != nil {
		t.Fatal(err)
	}
	known, err := catalog.Default("gen")
	if err != nil {
		t.Fatal(err)
	}
	logger := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	ctx := await.TestContext(t)
	work, stop := context.WithCancel(ctx)
	var workers sync.WaitGroup
	workers.Go(func() {
		worker.New(worker.Config{
			Queue: h.queue, Runs: h.runs, Blobs: blobs, Engine: writer{}, Catalog: known, Folder: t.TempDir(),
			Slots: map[job.Lane]int{job.VideoLane: 6}, Now: time.Now, Random: rand.Reader, Logger: logger,
			Pace: worker.Pace{Lease: 15 * time.Second, ProgressEvery: time.Second},
		}).Run(work)
	})
	defer workers.Wait()
	defer stop()

	service := job.NewService(job.Config{
		Store: h.jobs, Now: time.Now, Random: rand.Reader, Workers: map[job.Lane]int{job.VideoLane: 64},
	})
	var (
		mu       sync.Mutex
		accepted []string
		all      sync.WaitGroup
	)
	for range submitters {
		all.Go(func() {
			for range jobsEach {
				id, err := service.NewID()
				if err != nil {
					t.Error(err)
					return
				}
				// If a job is rejected, the client knows, so nothing is lost.
				if _, err := service.Submit(ctx, job.Job{
					ID: id, Account: "acme", Key: "key_0123456789ab", Model: "gen-pro-t2v", Lane: job.VideoLane,
					Request: job.Request{Prompt: "a heron", Options: map[string]any{"resolution": "720p"}},
				}, limit, 0); err == nil {
					mu.Lock()
					accepted = append(accepted, id)
					mu.Unlock()
				}
			}
		})
	}
	all.Wait()

	// From now on calls do not fail, so that the records can be checked.
	clean := dynamo.NewRuns(dynamo.NewClient(cloud.Config()), h.table)
	completed := 0
	for _, id := range accepted {
		j := ended(t, ctx, clean, id)
		switch {
		case j.Status == job.Completed:
			completed++
			checkResult(t, ctx, blobs, j)
		case j.Failure.Code != job.WorkerLost:
			t.Errorf("job %s failed: %+v", id, j.Failure)
		}
	}
	t.Logf("of %d jobs %d were accepted and %d completed; faults: %v", limit, len(accepted), completed, proxy.Met())
	if len(accepted) < limit/2 || completed < len(accepted)*9/10 {
		t.Errorf("of %d jobs only %d were accepted and %d completed", limit, len(accepted), completed)
	}

	proxy.SetFaults(awstest.Faults{})
	open := func(now func() time.Time) int {
		jobs := dynamo.NewJobs(clean, nil,
			sqsqueue.NewLengths(cloud.Config(), map[job.Lane]string{job.VideoLane: h.video.URL}), now)
		backlog, err := jobs.Backlog(ctx, job.VideoLane, "acme")
		if err != nil {
			t.Fatal(err)
		}
		return backlog.AccountJobs
	}
	// Jobs that were recorded but never queued stay open until their deadline. A worker removes a completed job from
	// the open jobs by a second write. It tries that write a few times, so at most one of them may be missing.
	await.Value(t, "the completed jobs are not counted as open", func() int { return open(time.Now) },
		func(n int) bool { return n <= limit-len(accepted)+1 })
	if n := open(func() time.Time { return time.Now().Add(job.MaxAge) }); n > 0 {
		t.Errorf("after the longest deadline %d jobs are still counted as open", n)
	}
}

func ended(t *testing.T, ctx context.Context, runs *dynamo.Runs, id string) job.Job {
	t.Helper()
	return await.Value(t, "job "+id+" ends", func() job.Job {
		j, err := runs.Get(ctx, id)
		if err != nil {
			t.Fatalf("job %s: %v", id, err)
		}
		return j
	}, func(j job.Job) bool { return j.Status.Terminal() })
}

func checkResult(t *testing.T, ctx context.Context, blobs *diskblob.Store, j job.Job) {
	t.Helper()
	stored, err := blobs.Open(ctx, j.Result.Blob, 0, -1)
	if err != nil {
		t.Errorf("the result of job %s: %v", j.ID, err)
		return
	}
	defer stored.Close()
	content, err := io.ReadAll(stored)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(content)
	if string(content) != j.ID || hex.EncodeToString(sum[:]) != j.Result.SHA256 ||
		j.Result.Blob != job.ResultBlob(j.ID, j.Nonce) {
		t.Errorf("the result of job %s, %+v of run %s, is %q", j.ID, j.Result, j.Nonce, content)
	}
}
