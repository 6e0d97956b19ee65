package worker_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"cutroom/shared/adapter/diskblob"
	"cutroom/shared/adapter/sqlite"
	"cutroom/shared/domain/audit"
	"cutroom/shared/domain/blob"
	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
	"cutroom/shared/domain/media"
	"cutroom/shared/engine"
	"cutroom/shared/platform/boottime"
	"cutroom/shared/service/worker"
	"cutroom/shared/testkit/await"
	"cutroom/shared/testkit/conformance"
	"cutroom/shared/testkit/sqlitetest"
)

type script func(ctx context.Context, spec engine.Spec, progress func(engine.Progress)) error

func (s script) Run(
	ctx context.Context, spec engine.Spec, progress func(engine.Progress),
) (engine.Outcome, error) {
	return scripted(), s(ctx, spec, progress)
}

func scripted() engine.Outcome {
	return engine.Outcome{
		Engine: "script", Understood: []string{}, Notice: "Nothing was asked.",
		Size: catalog.Size{Width: 720, Height: 720}, Duration: 3 * time.Second,
	}
}

// succeed writes a mark followed by the bytes of the input.
func succeed(_ context.Context, spec engine.Spec, _ func(engine.Progress)) error {
	input, err := os.ReadFile(spec.Data.Path)
	if err != nil {
		return err
	}
	return os.WriteFile(spec.Output, append([]byte("edited: "), input...), 0o600)
}

// prober treats every file as a portrait clip of two seconds, or 20 if it contains "long", unless it contains "broken".
type prober struct{}

func (prober) ProbeVideo(_ context.Context, path, _ string) (media.Info, error) {
	data, err := os.ReadFile(path)
	if err != nil || bytes.Contains(data, []byte("broken")) {
		return media.Info{}, engine.InvalidInput(err, "The video cannot be decoded.")
	}
	length, lost := 2*time.Second, bytes.Contains(data, []byte("unknown sound"))
	if bytes.Contains(data, []byte("long")) {
		length *= 10
	}
	return media.Info{Width: 1080, Height: 1920, Duration: length, SoundLost: lost}, nil
}

func (p prober) ReadVideo(ctx context.Context, folder, path, mime string) (engine.Input, error) {
	return p.ReadImage(ctx, folder, path, mime)
}

func (p prober) ReadImage(ctx context.Context, _, path, mime string) (engine.Input, error) {
	info, err := p.ProbeVideo(ctx, path, mime)
	return engine.Input{Path: path, MIME: mime, Info: info}, err
}

// Tests use a short lease only if they need one, because the default outlasts stalls of a busy machine.
func shortLease(c *worker.Config) { c.Lease = 3 * time.Second }

// fixture is a worker's environment, with a real database and a real blob folder.
type fixture struct {
	t       *testing.T
	jobs    *sqlite.Jobs
	budgets *sqlite.Budgets
	claims  []budget.Claim
	queue   worker.Queue
	blobs   blob.Store
	service *job.Service
	scratch string
	worker  *worker.Worker
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	// The database uses this clock to decide when leases end.
	db := sqlitetest.Open(t, filepath.Join(t.TempDir(), "cutroom.db"), sqlite.Options{Now: await.NewClock(t).Now})
	blobs, err := diskblob.Open(filepath.Join(t.TempDir(), "blobs"))
	if err != nil {
		t.Fatal(err)
	}
	clock, err := boottime.Open()
	if err != nil {
		t.Fatal(err)
	}
	jobs, budgets := db.Jobs(), db.Budgets(clock)
	jobs.HoldIn(budgets)
	return &fixture{
		t: t, jobs: jobs, budgets: budgets, queue: db.Queue(), blobs: blobs, scratch: t.TempDir(),
		service: job.NewService(job.Config{Store: db.Jobs(), Now: time.Now, Random: rand.Reader}),
	}
}

// start starts a worker. stop returns once the worker has drained.
func (s *fixture) start(run script, change ...func(*worker.Config)) (stop func()) {
	s.t.Helper()
	known, err := catalog.Default("gen")
	if err != nil {
		s.t.Fatal(err)
	}
	config := worker.Config{
		Queue: s.queue, Runs: s.jobs, Blobs: s.blobs, Engine: run, Catalog: known, Folder: s.scratch,
		Slots: map[job.Lane]int{job.VideoLane: 1}, Now: time.Now, Random: rand.Reader,
		Logger: slog.New(slog.NewTextHandler(testWriter{s.t}, nil)),
		Tools:  worker.Tools{Prober: prober{}},
		Pace: worker.Pace{
			Lease: time.Hour, ProgressEvery: 10 * time.Millisecond, CheckEvery: 100 * time.Millisecond,
		},
	}
	for _, c := range change {
		c(&config)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	started := worker.New(config)
	s.worker = started
	go func() {
		defer close(done)
		started.Run(ctx)
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		<-done
	})
	s.t.Cleanup(stop)
	return stop
}

// submit submits a job of the given age and returns its id.
func (s *fixture) submit(content string, age time.Duration, change ...func(*job.Job)) string {
	s.t.Helper()
	id, err := s.service.NewID()
	if err != nil {
		s.t.Fatal(err)
	}
	name := job.InputBlob(id, "data")
	if _, err := s.blobs.Put(s.t.Context(), name, strings.NewReader(content)); err != nil {
		s.t.Fatal(err)
	}
	created := time.Now().Add(-age).UTC().Truncate(time.Millisecond)
	j := job.Job{
		ID: id, Account: "acme", Model: "gen-2.5", Lane: job.VideoLane, Seed: 7, Status: job.Pending,
		Request: job.Request{
			Options: map[string]any{"resolution": "720p"}, Inputs: map[string]job.Input{"data": {Blob: name, MIME: "video/mp4"}},
		},
		CreatedAt: created, Deadline: created.Add(job.MaxAge),
	}
	for _, c := range change {
		c(&j)
	}
	err = s.jobs.Accept(s.t.Context(), j, 0, s.claims...)
	if err != nil {
		s.t.Fatal(err)
	}
	return id
}

// read returns a blob's content. ok is false if the blob does not exist.
func (s *fixture) read(name string) (content []byte, ok bool) {
	s.t.Helper()
	r, err := s.blobs.Open(context.Background(), name, 0, -1)
	if fault.Is(err, fault.NotFound) {
		return nil, false
	}
	if err != nil {
		s.t.Fatal(err)
	}
	defer r.Close()
	if content, err = io.ReadAll(r); err != nil {
		s.t.Fatal(err)
	}
	return content, true
}

func (s *fixture) await(id, what string, ok func(job.Job) bool) job.Job {
	s.t.Helper()
	return await.Value(s.t, "the job is "+what, func() job.Job {
		j, err := s.jobs.Get(s.t.Context(), id)
		if err != nil {
			s.t.Fatal(err)
		}
		return j
	}, ok)
}

func (s *fixture) awaitEnd(id string) job.Job {
	s.t.Helper()
	return s.await(id, "ended", func(j job.Job) bool { return j.Status.Terminal() })
}

// wantCompleted expects jobs to be completed by their first run.
func (s *fixture) wantCompleted(ids ...string) {
	s.t.Helper()
	for _, id := range ids {
		if j := s.awaitEnd(id); j.Status != job.Completed || j.Runs != 1 {
			s.t.Errorf("got %+v", j)
		}
	}
}

func (s *fixture) wantFailure(id string, code job.Code, message string) {
	s.t.Helper()
	j := s.awaitEnd(id)
	if j.Status != job.Failed || j.Failure.Code != code || !strings.Contains(j.Failure.Message, message) ||
		j.Result != nil {
		s.t.Errorf("the job ended as %s, %+v, result %v; want %s with %q", j.Status, j.Failure, j.Result, code, message)
	}
}

// wantClean stops the worker and checks that the scratch folder is empty.
func (s *fixture) wantClean(stop func()) {
	s.t.Helper()
	stop()
	left, err := os.ReadDir(s.scratch)
	if err != nil || len(left) > 0 {
		s.t.Errorf("the scratch folder contains %v, %v", left, err)
	}
}

// wantNoInput checks that a job's input was deleted. The worker must have stopped.
func (s *fixture) wantNoInput(id string) {
	s.t.Helper()
	if content, ok := s.read(job.InputBlob(id, "data")); ok {
		s.t.Errorf("the job has ended, but its input %q is still stored", content)
	}
}

type testWriter struct{ t *testing.T }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Log(strings.TrimSpace(string(p)))
	return len(p), nil
}

func TestJobIsCompleted(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	id := s.submit("a clip", 0)
	var seen engine.Spec
	stop := s.start(func(ctx context.Context, spec engine.Spec, progress func(engine.Progress)) error {
		seen = spec
		for _, fraction := range []float64{0.25, 0.5, 0.1, 0.75} {
			progress(engine.Progress{Fraction: fraction})
			want := max(fraction, 0.25)
			s.await(id, "as far along as its engine", func(j job.Job) bool { return j.Progress >= want })
		}
		return succeed(ctx, spec, progress)
	})
	j := s.awaitEnd(id)
	s.wantClean(stop)
	s.wantNoInput(id)
	if j.Status != job.Completed || j.Runs != 1 || j.StartedAt.IsZero() || j.CompletedAt.Before(j.StartedAt) ||
		j.Progress != 1 {
		t.Errorf("got %+v", j)
	}
	result, _ := s.read(j.Result.Blob)
	sum := sha256.Sum256(result)
	if string(result) != "edited: a clip" || j.Result.Size != int64(len(result)) ||
		j.Result.SHA256 != hex.EncodeToString(sum[:]) {
		t.Errorf("the result is %q, recorded as %+v", result, j.Result)
	}
	recorded := engine.Outcome{
		Engine: j.Result.Engine, Understood: j.Result.Understood, Notice: j.Result.Notice,
		Size: catalog.Size{Width: j.Result.Width, Height: j.Result.Height}, Duration: j.Result.Duration,
	}
	if !reflect.DeepEqual(recorded, scripted()) {
		t.Errorf("%+v of the engine's report was recorded", recorded)
	}
	if seen.Size != (catalog.Size{Width: 720, Height: 1280}) {
		t.Errorf("the engine was asked for %s", seen.Size)
	}
	if seen.Remaining <= 0 || seen.Remaining >= job.MaxAge {
		t.Errorf("got the engine %s", seen.Remaining)
	}
	if seen.FPS != 20 || seen.Duration != 2*time.Second || seen.Seed != 7 || seen.Kind != catalog.Edit {
		t.Errorf("the engine was asked for %+v", seen)
	}
}

func TestNoticeReportsLostSound(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	id := s.submit("a clip with an unknown sound", 0)
	s.start(succeed)
	j := s.awaitEnd(id)
	if want := scripted().Notice + " The result has no sound"; j.Status != job.Completed || !strings.HasPrefix(j.Result.Notice, want) {
		t.Errorf("the job is %s with the notice %q", j.Status, j.Result.Notice)
	}
}

func TestFailedRunsFailTheJob(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		content string
		run     script
		code    job.Code
		message string
		runs    int
	}{
		{"an input that cannot be decoded", "broken", succeed, job.InvalidInput, "cannot be decoded", 1},
		{"an engine that refuses", "clip", func(context.Context, engine.Spec, func(engine.Progress)) error {
			return &engine.Error{Code: job.EngineError, Message: "No such look."}
		}, job.EngineError, "No such look.", 1},
		{"an engine that writes nothing", "clip", func(_ context.Context, spec engine.Spec, _ func(engine.Progress)) error {
			return nil
		}, job.EngineError, "The engine failed.", 3},
		{"an engine that fails each time", "clip", func(context.Context, engine.Spec, func(engine.Progress)) error {
			return errors.New("/secret/path: out of memory")
		}, job.EngineError, "The engine failed.", 3},
		{"an engine that panics", "clip", func(context.Context, engine.Spec, func(engine.Progress)) error {
			panic("a test")
		}, job.EngineError, "The engine failed.", 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newFixture(t)
			id := s.submit(c.content, 0)
			stop := s.start(c.run)
			s.wantFailure(id, c.code, c.message)
			s.wantClean(stop)
			s.wantNoInput(id)
			if j := s.awaitEnd(id); j.Runs != c.runs {
				t.Errorf("%d runs, want %d", j.Runs, c.runs)
			}
		})
	}
}

func TestImageGoesOnlyToEngineThatMakesVideosOfImages(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	id := s.submit("portrait", 0, func(j *job.Job) { j.Model = "gen-pro-i2v" })
	stop := s.start(succeed)
	s.wantFailure(id, job.EngineError, "The engine makes no videos from images.")
	s.wantClean(stop)
	if j := s.awaitEnd(id); j.Runs != 1 {
		t.Errorf("%d runs, want 1", j.Runs)
	}
}

// The length in the header determines the reserved cost, and whether the job may use a spare slot. A clip may be up to a
// second longer.
func TestClipLongerThanItsHeaderFails(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		content        string
		declared, clip time.Duration
		budgeted       bool
		fails          string
	}{
		{"clip", 900 * time.Millisecond, 0, true, "longer than its header states"},
		{"clip", 2100 * time.Millisecond, 0, true, ""},
		{"clip", 500 * time.Millisecond, 0, false, ""},
		{"clip", 10 * time.Second, 900 * time.Millisecond, true, "longer than its header states"},
		{"clip", 1900 * time.Millisecond, 2 * time.Second, true, "The result is 3.0 s long, but its budget reserved 1.9 s."},
		{"a long clip", time.Second, 0, false, "longer than its header states"},
		{"a long clip", 16 * time.Second, 0, false, ""},
	} {
		t.Run(fmt.Sprint(c.content, c.declared, c.clip, c.budgeted), func(t *testing.T) {
			t.Parallel()
			s := newFixture(t)
			spend := budget.Budget{ID: budget.ID{Account: "acme", Period: budget.Month, Unit: budget.Cost}, Limit: 1e12}
			conformance.OK(t, s.budgets.Set(t.Context(), audit.Operator(time.Now()), spend))
			claim := budget.Claim{Counter: spend.Counter(time.Now()), Limit: spend.Limit, Amount: 1e9}
			id := s.submit(c.content, 0, func(j *job.Job) { j.Request.Length, j.Request.Clip = c.declared, c.clip }, func(j *job.Job) {
				if c.budgeted {
					s.claims = []budget.Claim{claim}
				}
			})
			used := func() int64 {
				n, err := s.budgets.Used(t.Context(), []budget.Counter{claim.Counter})
				conformance.OK(t, err)
				return n[0]
			}
			if want := int64(len(s.claims)) * claim.Amount; used() != want {
				t.Errorf("%d reservations, want %d", used(), want)
			}
			s.start(succeed)
			if c.fails != "" {
				s.wantFailure(id, job.InvalidInput, c.fails)
			} else if j := s.awaitEnd(id); j.Status != job.Completed {
				t.Errorf("the job is %s: %+v", j.Status, j.Failure)
			}
			if used() != 0 { // the model has no price
				t.Errorf("%d used", used())
			}
		})
	}
}

func TestFailedRunIsRetried(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	id := s.submit("clip", 0)
	runs := 0
	s.start(func(ctx context.Context, spec engine.Spec, progress func(engine.Progress)) error {
		if runs++; runs == 1 {
			progress(engine.Progress{Fraction: 0.9})
			s.await(id, "at 0.9", func(j job.Job) bool { return j.Progress >= 0.9 })
			return errors.New("the device fell off the bus")
		}
		progress(engine.Progress{Fraction: 0.2})
		return succeed(ctx, spec, progress)
	})
	lowest := 0.0
	j := s.await(id, "ended", func(j job.Job) bool {
		if j.Progress < lowest {
			t.Errorf("progress fell from %v to %v", lowest, j.Progress)
		}
		lowest = j.Progress
		return j.Status.Terminal()
	})
	if j.Status != job.Completed || j.Runs != 2 {
		t.Errorf("got %+v", j)
	}
}

func TestDrainReturnsJob(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	id := s.submit("clip", 0)
	for range job.MaxRuns + 1 {
		running := make(chan struct{})
		stop := s.start(func(ctx context.Context, _ engine.Spec, _ func(engine.Progress)) error {
			close(running)
			<-ctx.Done()
			return ctx.Err()
		})
		await.Receive(t, "running", running)
		s.wantClean(stop)
		if j := s.await(id, "there", func(job.Job) bool { return true }); j.Status != job.Processing || j.Runs != 0 {
			t.Fatalf("after a drain the job is %s with %d runs", j.Status, j.Runs)
		}
	}
	s.start(succeed)
	s.wantCompleted(id)
}

func TestCancelledJobStopsEngine(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	id := s.submit("clip", 0)
	running, stopped := make(chan struct{}), make(chan struct{})
	s.start(func(ctx context.Context, spec engine.Spec, progress func(engine.Progress)) error {
		close(running)
		<-ctx.Done()
		close(stopped)
		return succeed(ctx, spec, progress) // the engine finishes anyway
	})
	await.Receive(t, "running", running)
	if err := s.jobs.Fail(
		t.Context(), id, "", job.Failure{Code: job.Cancelled, Message: "Cancelled."}, time.Now(),
	); err != nil {
		t.Fatal(err)
	}
	await.Receive(t, "stopped", stopped)
	s.wantFailure(id, job.Cancelled, "Cancelled.")
}

func TestRunStopsAtDeadline(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	id := s.submit("clip", job.MaxAge-4*time.Second)
	stop := s.start(func(ctx context.Context, _ engine.Spec, _ func(engine.Progress)) error {
		<-ctx.Done()
		return ctx.Err()
	})
	s.wantFailure(id, job.TimedOut, "10 minutes")
	s.wantClean(stop)
	s.wantNoInput(id)
}

// silent is a queue whose leases cannot be extended, as if the worker hung.
type silent struct{ worker.Queue }

func (q silent) Receive(ctx context.Context, lane job.Lane, lease time.Duration) (worker.Delivery, error) {
	d, err := q.Queue.Receive(ctx, lane, lease)
	return silentDelivery{d}, err
}

type silentDelivery struct{ worker.Delivery }

func (silentDelivery) Extend(context.Context, time.Duration) error { return errors.New("no answer") }

// If an engine's output is a link, it is not delivered, because it could point to any file.
func TestLinkIsNotDeliveredAsResult(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	id := s.submit("clip", 0)
	s.start(func(_ context.Context, spec engine.Spec, _ func(engine.Progress)) error {
		return os.Symlink(secret, spec.Output)
	})
	if j := s.awaitEnd(id); j.Status != job.Failed {
		t.Errorf("the job is %s", j.Status)
	}
}

func TestLostLeaseChangesNothing(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	id := s.submit("clip", 0)
	hung, woken := make(chan struct{}), make(chan struct{})
	stopHung := s.start(func(_ context.Context, spec engine.Spec, _ func(engine.Progress)) error {
		close(hung)
		<-woken // ignores the context
		return os.WriteFile(spec.Output, []byte("late"), 0o600)
	}, shortLease, func(c *worker.Config) { c.Queue = silent{s.queue} })
	await.Receive(t, "hung", hung)
	s.start(succeed)
	first := s.awaitEnd(id)
	if first.Status != job.Completed || first.Runs != 2 {
		t.Fatalf("got %+v", first)
	}
	close(woken)
	stopHung()
	if again := s.awaitEnd(id); again.Result.SHA256 != first.Result.SHA256 || again.Nonce != first.Nonce {
		t.Errorf("the late worker changed %+v to %+v", first.Result, again.Result)
	}
}

// The worker that would start a fourth run fails the job instead.
func TestJobFailsAfterThreeLostRuns(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	id := s.submit("clip", 0)
	for i := range job.MaxRuns {
		if _, err := s.jobs.Start(t.Context(), id, string(rune('a'+i)), time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	s.start(func(context.Context, engine.Spec, func(engine.Progress)) error {
		t.Error("a fourth run started")
		return nil
	})
	s.wantFailure(id, job.WorkerLost, "three times")
}

// short is a blob store that at first lacks the file descriptors to open blobs.
type short struct {
	blob.Store
	failures *atomic.Int64
}

func (s short) Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	if s.failures.Add(-1) >= 0 {
		return nil, &os.PathError{Op: "open", Path: name, Err: syscall.EMFILE}
	}
	return s.Store.Open(ctx, name, offset, length)
}

// If a run cannot start because file descriptors have run out, it does not count.
func TestFileDescriptorShortageCostsNoRun(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	id := s.submit("clip", 0)
	var reading, editing atomic.Int64
	reading.Store(job.MaxRuns)
	editing.Store(1)
	stop := s.start(func(ctx context.Context, spec engine.Spec, progress func(engine.Progress)) error {
		if editing.Add(-1) >= 0 {
			return fmt.Errorf("start ffmpeg: %w", os.NewSyscallError("pipe2", syscall.EMFILE))
		}
		return succeed(ctx, spec, progress)
	}, func(c *worker.Config) { c.Blobs = short{s.blobs, &reading} })
	j := s.awaitEnd(id)
	if j.Status != job.Completed || j.Runs != 1 {
		t.Errorf("got %s after %d runs, %+v", j.Status, j.Runs, j.Failure)
	}
	s.wantClean(stop)
}
