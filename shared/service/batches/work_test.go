package batches_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cutroom/shared/domain/batch"
	"cutroom/shared/service/batches"
	"cutroom/shared/service/gateway"
	"cutroom/shared/testkit/await"
	"cutroom/shared/testkit/busytest"
)

// Two processes work on the same batch, because each believes that the other is dead.
func TestConcurrentProcessesMakeEachCallOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.intervals = batches.Intervals{Keep: time.Millisecond, Watch: time.Millisecond}
	b := w.create("acme", lines(200))
	// No call returns until both processes have made their first calls.
	var first atomic.Int32
	both := make(chan struct{})
	w.set(func(_ context.Context, body string) gateway.BatchResponse {
		if first.Add(1) == 6 { // three per process, of the four calls that an account may make
			close(both)
		}
		<-both
		return answered("acme", "key_acme", body)
	})
	var working sync.WaitGroup
	for range 2 {
		runner := w.newRunner()
		working.Go(func() { runner.Work(t.Context(), b, time.Hour) })
	}
	working.Wait()
	b = w.reaches(b, batch.Completed)
	if results := w.results("acme", b.Output); len(results) != 200 || b.Answered != 200 || w.billed("acme") != 200 {
		t.Errorf("%d calls have results, %d are counted, %d were billed", len(results), b.Answered, w.billed("acme"))
	}
	files, _, err := w.files.ListAfter(t.Context(), "acme", "", 10)
	if w.must(err); len(files) != 2 {
		t.Errorf("found %d files, want the input and the output", len(files))
	}
}

// A process receives results after another process has ended the batch and deleted its blobs.
func TestLateResultsAreDropped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.create("acme", lines(20))
	var calls atomic.Int32
	under, over := make(chan struct{}), make(chan struct{})
	w.set(func(_ context.Context, body string) gateway.BatchResponse {
		if n := calls.Add(1); n <= 3 { // the first process's calls, of which it may make three
			if n == 3 {
				close(under)
			}
			<-over
		}
		return answered("acme", "key_acme", body)
	})
	late := make(chan struct{})
	go func() {
		defer close(late)
		w.runner.Work(t.Context(), b, time.Hour)
	}()
	await.Receive(t, "under", under)
	w.newRunner().Work(t.Context(), b, time.Hour)
	ended := w.reaches(b, batch.Completed)
	w.must((&batch.Sweeper{Store: w.db.Batches(), Blobs: w.blobs, Storage: w.storage(), Now: w.now}).Sweep(t.Context()))
	close(over)
	await.Receive(t, "late", late)
	if now := w.reaches(b, batch.Completed); now.Answered != 20 || now.Revision != ended.Revision || w.billed("acme") != 20 {
		t.Errorf("%d were billed of %+v, which was %+v", w.billed("acme"), now, ended)
	}
	for entry, err := range w.blobs.List(t.Context(), "batches/"+b.ID) {
		t.Errorf("%s remains, %v", entry.Name, err)
	}
}

// An interrupted call is made again.
func TestWorkStopsAndContinues(t *testing.T) {
	t.Parallel()
	busytest.Try(t, 2*time.Second, func(d time.Duration) error {
		w := newWorld(t)
		w.intervals = batches.Intervals{Keep: time.Millisecond, Watch: time.Millisecond, Grace: time.Nanosecond}
		b := w.create("acme", lines(20))
		made := make(chan struct{}, 20)
		w.set(func(ctx context.Context, body string) gateway.BatchResponse {
			if body == bodyOf(3) {
				made <- struct{}{}
				<-ctx.Done()
				return gateway.BatchResponse{Cut: true}
			}
			return answered("acme", "key_acme", body)
		})
		w.newRunner().Work(t.Context(), b, d)
		b, err := w.service.Get(t.Context(), "acme", b.ID)
		w.must(err)
		if b.Status != batch.InProgress || len(made) != 1 || b.Attempts.Count != 0 {
			return fmt.Errorf("the call was started %d times; the batch is %+v", len(made), b)
		}
		w.set(nil)
		w.newRunner().Work(t.Context(), b, time.Hour)
		if b = w.reaches(b, batch.Completed); len(w.results("acme", b.Output)) != 20 || w.billed("acme") != 20 {
			t.Errorf("%d were billed of %+v", w.billed("acme"), b)
		}
		return nil
	})
}

func TestWorkPausesWhileCallsAreRejected(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.intervals = batches.Intervals{Watch: time.Millisecond, PauseAfter: 2 * time.Second}
	b := w.create("acme", lines(20))
	w.set(func(context.Context, string) gateway.BatchResponse {
		return gateway.BatchResponse{Status: http.StatusTooManyRequests, RetryAfter: time.Second}
	})
	w.newRunner().Work(t.Context(), b, time.Hour)
	if b = w.reaches(b, batch.InProgress); b.Answered+b.Failed != 0 {
		t.Errorf("got %+v", b)
	}
}
