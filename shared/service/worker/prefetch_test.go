package worker_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cutroom/shared/domain/blob"
	"cutroom/shared/domain/job"
	"cutroom/shared/engine"
	"cutroom/shared/service/worker"
	"cutroom/shared/testkit/await"
)

func prefetch(c *worker.Config) { c.Prefetch = true }

// stage is an engine. Each run sends its job's id to the test, then waits for the channel let.
type stage struct {
	begun    chan string
	let      chan struct{}
	fraction float64 // progress reported at the start of a run
}

func newStage() *stage {
	return &stage{begun: make(chan string, 10), let: make(chan struct{}), fraction: 0.99}
}

func (s *stage) run(ctx context.Context, spec engine.Spec, progress func(engine.Progress)) error {
	progress(engine.Progress{Fraction: s.fraction, Stage: "denoise"})
	s.begun <- spec.Job
	select {
	case <-s.let:
		return succeed(ctx, spec, progress)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *stage) starts(t *testing.T, want string) {
	t.Helper()
	if id := await.Receive(t, "a run", s.begun); id != want {
		t.Fatalf("%s started, want %s", id, want)
	}
}

// watched is a blob store that records which blobs were opened.
type watched struct {
	blob.Store
	opened chan string
}

func watch(s *fixture) watched { return watched{s.blobs, make(chan string, 20)} }

func (w watched) Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	w.opened <- name
	return w.Store.Open(ctx, name, offset, length)
}

// awaitFetched waits until the job's input is complete in the scratch folder.
func (s *fixture) awaitFetched(id, content string) {
	s.t.Helper()
	await.Value(s.t, "the input of "+id, func() (fetched []string) {
		paths, err := filepath.Glob(filepath.Join(s.scratch, id+"-*", "data"))
		if err != nil {
			s.t.Fatal(err)
		}
		for _, path := range paths {
			got, _ := os.ReadFile(path) // the file may have been removed
			fetched = append(fetched, string(got))
		}
		return fetched
	}, func(fetched []string) bool { return slices.Contains(fetched, content) })
}

func (s *fixture) awaitLoad(what string, ok func(worker.Load) bool) {
	s.t.Helper()
	await.Value(s.t, what, func() worker.Load { return s.worker.Loads()[0] }, ok)
}

func (s *fixture) get(id string) job.Job {
	s.t.Helper()
	j, err := s.jobs.Get(s.t.Context(), id)
	if err != nil {
		s.t.Fatal(err)
	}
	return j
}

// Prefetching does not start a run, and the run does not fetch the inputs again.
func TestNextJobIsPrefetched(t *testing.T) {
	t.Parallel()
	s, stage := newFixture(t), newStage()
	blobs := watch(s)
	first, second, third := s.submit("one", 0), s.submit("two", 0), s.submit("three", 0)
	stop := s.start(stage.run, prefetch, func(c *worker.Config) { c.Blobs = blobs })
	stage.starts(t, first)
	s.awaitFetched(second, "two")
	if j := s.get(second); j.Status != job.Pending || j.Runs != 0 || !j.StartedAt.IsZero() {
		t.Errorf("a prefetched job is %s after %d runs", j.Status, j.Runs)
	}
	stage.let <- struct{}{}
	stage.starts(t, second)
	s.awaitFetched(third, "three")
	stage.let <- struct{}{}
	await.Receive(t, "stage.begun", stage.begun)
	stage.let <- struct{}{}
	s.wantCompleted(first, second, third)
	s.wantClean(stop)
	close(blobs.opened)
	var opened []string
	for name := range blobs.opened {
		opened = append(opened, name)
	}
	if want := []string{
		job.InputBlob(first, "data"), job.InputBlob(second, "data"), job.InputBlob(third, "data"),
	}; !slices.Equal(opened, want) {
		t.Errorf("fetched %v, want %v", opened, want)
	}
}

// A slot prefetches only near the end of its run. Other workers can take the remaining jobs.
func TestOnlyOneJobIsPrefetched(t *testing.T) {
	t.Parallel()
	s, busy := newFixture(t), newStage()
	first := s.submit("one", 0)
	busy.fraction = 0 // no progress is reported
	s.start(busy.run, prefetch)
	await.Receive(t, "busy.begun", busy.begun)
	second := s.submit("two", 0)
	other := newStage()
	s.start(other.run, prefetch)
	other.starts(t, second)
	third, fourth := s.submit("three", 0), s.submit("four", 0)
	s.awaitFetched(third, "three")
	idle := newStage()
	s.start(idle.run, prefetch)
	idle.starts(t, fourth)
	close(busy.let)
	close(other.let)
	close(idle.let)
	s.wantCompleted(first, second, third, fourth)
}

func TestFirstFreeSlotRunsPrefetchedJob(t *testing.T) {
	t.Parallel()
	s, stage := newFixture(t), newStage()
	s.submit("one", 0)
	s.submit("two", 0)
	stop := s.start(stage.run, prefetch, func(c *worker.Config) { c.Slots = map[job.Lane]int{job.VideoLane: 2} })
	await.Receive(t, "stage.begun", stage.begun)
	await.Receive(t, "stage.begun", stage.begun)
	third := s.submit("three", 0)
	s.awaitFetched(third, "three")
	stage.let <- struct{}{} // ends one of the two runs
	stage.starts(t, third)
	close(stage.let)
	s.wantCompleted(third)
	s.wantClean(stop)
}

func TestDrainReleasesPrefetchedJob(t *testing.T) {
	t.Parallel()
	s, stage := newFixture(t), newStage()
	first, second := s.submit("one", 0), s.submit("two", 0)
	stop := s.start(stage.run, prefetch)
	await.Receive(t, "stage.begun", stage.begun)
	s.awaitFetched(second, "two")
	s.wantClean(stop)
	if j := s.get(first); j.Status != job.Processing || j.Runs != 0 {
		t.Errorf("the job that ran is %s after %d runs", j.Status, j.Runs)
	}
	if j := s.get(second); j.Status != job.Pending || j.Runs != 0 {
		t.Errorf("the prefetched job is %s after %d runs", j.Status, j.Runs)
	}
	s.start(succeed) // long before the leases would expire
	s.wantCompleted(first, second)
}

func TestEndedPrefetchedJobIsDropped(t *testing.T) {
	t.Parallel()
	s, stage := newFixture(t), newStage()
	s.submit("one", 0)
	cancelled := s.submit("two", 0)
	stop := s.start(stage.run, prefetch)
	await.Receive(t, "stage.begun", stage.begun)
	s.awaitFetched(cancelled, "two")
	if err := s.jobs.Fail(
		t.Context(), cancelled, "", job.Failure{Code: job.Cancelled, Message: "Cancelled."}, time.Now(),
	); err != nil {
		t.Fatal(err)
	}
	next := s.submit("three", 0)
	close(stage.let)
	s.wantCompleted(next)
	if j := s.get(cancelled); j.Failure.Code != job.Cancelled || j.Runs != 0 {
		t.Errorf("got %+v", j)
	}
	s.wantClean(stop)
}

func TestOverduePrefetchedJobTimesOut(t *testing.T) {
	t.Parallel()
	s, stage := newFixture(t), newStage()
	s.submit("one", 0)
	stop := s.start(stage.run, prefetch)
	await.Receive(t, "stage.begun", stage.begun)
	late := s.submit("two", job.MaxAge-4*time.Second)
	s.wantFailure(late, job.TimedOut, "10 minutes")
	if j := s.get(late); j.Runs != 0 {
		t.Errorf("%d runs", j.Runs)
	}
	next := s.submit("three", 0)
	s.awaitFetched(next, "three") // prefetching still works
	s.wantClean(stop)
	s.wantNoInput(late)
}

// failing is a blob store in which the first reads of one job's blobs fail.
type failing struct {
	blob.Store
	id   string
	left *atomic.Int64
}

func (f failing) Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	if strings.HasPrefix(name, job.Folder(f.id)) && f.left.Add(-1) >= 0 {
		return nil, errors.New("the store is in trouble")
	}
	return f.Store.Open(ctx, name, offset, length)
}

// A run repeats a failed prefetch. If the input is invalid, the run still fails.
func TestFailedPrefetchIsRetriedByRun(t *testing.T) {
	t.Parallel()
	s, stage := newFixture(t), newStage()
	s.submit("one", 0)
	unlucky, broken := s.submit("two", 0), s.submit("broken", 0)
	reads := new(atomic.Int64)
	reads.Store(1)
	stop := s.start(stage.run, prefetch, func(c *worker.Config) { c.Blobs = failing{s.blobs, unlucky, reads} })
	await.Receive(t, "stage.begun", stage.begun)
	await.Until(t, "something is prefetched", func() bool { return reads.Load() <= 0 })
	close(stage.let)
	s.wantCompleted(unlucky)
	s.wantFailure(broken, job.InvalidInput, "cannot be decoded")
	if j := s.get(broken); j.Runs != 1 {
		t.Errorf("%d runs", j.Runs)
	}
	s.wantClean(stop)
}

func TestLeaseOfPrefetchedJobIsExtended(t *testing.T) {
	t.Parallel()
	s, stage := newFixture(t), newStage()
	s.submit("one", 0)
	extended := slow{s.blobs, new(atomic.Int64), make(chan struct{})}
	s.start(stage.run, prefetch, shortLease, func(c *worker.Config) { c.Queue = counting{s.queue, extended} })
	await.Receive(t, "stage.begun", stage.begun)
	held := s.submit("two", 0)
	s.awaitFetched(held, "two")
	other := newStage()
	s.start(other.run)
	last := s.submit("three", 0)
	other.starts(t, last)
	await.Receive(t, "extended.enough", extended.enough) // its first lease would have expired
	stage.let <- struct{}{}
	stage.starts(t, held)
	close(stage.let)
	close(other.let)
	s.wantCompleted(held)
}

// hanging is a queue that delivers two jobs. The second job's lease cannot be extended.
type hanging struct {
	worker.Queue
	given *atomic.Int64
}

func (q hanging) Receive(ctx context.Context, lane job.Lane, lease time.Duration) (worker.Delivery, error) {
	switch q.given.Add(1) {
	case 1:
		return q.Queue.Receive(ctx, lane, lease)
	case 2:
		return silent{q.Queue}.Receive(ctx, lane, lease)
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestHangingWorkerLosesPrefetchedJob(t *testing.T) {
	t.Parallel()
	s, stage := newFixture(t), newStage()
	s.submit("one", 0)
	stop := s.start(stage.run, prefetch, shortLease, func(c *worker.Config) { c.Queue = hanging{s.queue, new(atomic.Int64)} })
	await.Receive(t, "stage.begun", stage.begun)
	held := s.submit("two", 0)
	s.awaitFetched(held, "two")
	stopOther := s.start(succeed)
	s.wantCompleted(held)
	stopOther()
	s.wantClean(stop)
}

// tardy is a blob store whose writes wait until the test lets them finish.
type tardy struct {
	blob.Store
	storing chan string
	let     chan struct{}
}

func (s tardy) Put(ctx context.Context, name string, r io.Reader) (int64, error) {
	s.storing <- name
	select {
	case <-s.let:
		return s.Store.Put(ctx, name, r)
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// While a result is being stored, the engine works on the next job but not further ahead.
func TestResultIsStoredWhileEngineWorks(t *testing.T) {
	t.Parallel()
	s, stage := newFixture(t), newStage()
	store := tardy{s.blobs, make(chan string, 10), make(chan struct{})}
	jobs := []string{s.submit("one", 0), s.submit("two", 0), s.submit("three", 0)}
	stop := s.start(stage.run, prefetch, func(c *worker.Config) { c.Blobs = store })
	await.Receive(t, "stage.begun", stage.begun)
	stage.let <- struct{}{}
	if name := await.Receive(t, "store.storing", store.storing); !strings.HasPrefix(name, job.Folder(jobs[0])) {
		t.Errorf("%s is stored", name)
	}
	stage.starts(t, jobs[1])
	stage.let <- struct{}{}
	s.awaitFetched(jobs[2], "three")
	s.awaitLoad("done with the second job, with the third prefetched", func(l worker.Load) bool {
		return l.Busy == 0 && l.Prefetched == 1
	})
	select {
	case id := <-stage.begun:
		t.Errorf("%s started before a result was stored", id)
	default:
	}
	close(store.let)
	stage.starts(t, jobs[2])
	close(stage.let)
	s.wantCompleted(jobs...)
	s.wantClean(stop)
}

// draining is a queue that closes the channel started when the worker's drain cancels a Receive.
type draining struct {
	worker.Queue
	started chan struct{}
}

func (q draining) Receive(ctx context.Context, lane job.Lane, lease time.Duration) (worker.Delivery, error) {
	d, err := q.Queue.Receive(ctx, lane, lease)
	if err != nil && ctx.Err() != nil { // the error is the database's if it was interrupted
		close(q.started) // closed only once, because the other slot has a job
	}
	return d, err
}

func TestDrainCompletesStoring(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	store := tardy{s.blobs, make(chan string, 10), make(chan struct{})}
	id := s.submit("one", 0)
	drain := draining{s.queue, make(chan struct{})}
	stop := s.start(succeed, func(c *worker.Config) {
		c.Blobs, c.Queue, c.Slots = store, drain, map[job.Lane]int{job.VideoLane: 2}
	})
	await.Receive(t, "store.storing", store.storing)
	var stopping sync.WaitGroup
	stopping.Go(stop)
	await.Receive(t, "drain.started", drain.started)
	close(store.let)
	stopping.Wait()
	if j := s.get(id); j.Status != job.Completed || j.Runs != 1 {
		t.Errorf("got %+v", j)
	}
	s.wantClean(stop)
}
