package worker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"cutroom/shared/domain/blob"
	"cutroom/shared/domain/job"
	"cutroom/shared/engine"
	"cutroom/shared/engine/engineserver"
	"cutroom/shared/service/worker"
	"cutroom/shared/testkit/patience"
)

// serve starts an engine server whose runs the test defines: run gets the
// number of the request, counted from 1.
func serve(
	t *testing.T, silence time.Duration,
	run func(n int64, w http.ResponseWriter, r *http.Request, asked engineserver.Request),
) *engineserver.Engine {
	t.Helper()
	var runs atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked engineserver.Request
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			t.Error(err)
		}
		run(runs.Add(1), w, r, asked)
	}))
	t.Cleanup(server.Close)
	e, err := engineserver.New(engineserver.Config{URL: server.URL, Silence: silence})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// say sends a line of the response at once.
func say(w http.ResponseWriter, line string) {
	_, _ = io.WriteString(w, line+"\n")
	_ = http.NewResponseController(w).Flush()
}

// finish writes a result, as an engine server does.
func finish(t *testing.T, w http.ResponseWriter, asked engineserver.Request) {
	const video = "\x00\x00\x00\x18ftypisom\x00\x00\x02\x00isommp42 edited"
	if err := os.WriteFile(asked.Output, []byte(video), 0o600); err != nil {
		t.Error(err)
	}
	say(w, fmt.Sprintf(`{"result":{"bytes":%d}}`, len(video)))
}

// An engine server that fails in any way costs the job a run, and never ends
// the worker.
func TestAnEngineServerThatFails(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		trouble func(w http.ResponseWriter, r *http.Request)
	}{
		{"it crashes during a run", func(w http.ResponseWriter, _ *http.Request) {
			say(w, `{"progress":0.4,"stage":"denoise"}`)
			panic(http.ErrAbortHandler)
		}},
		{"it hangs", func(w http.ResponseWriter, r *http.Request) {
			say(w, `{"progress":0.4,"stage":"denoise"}`)
			<-r.Context().Done()
		}},
		{"it sends garbage", func(w http.ResponseWriter, _ *http.Request) { say(w, "Segmentation fault (core dumped)") }},
		{
			"it reports a result that does not exist",
			func(w http.ResponseWriter, _ *http.Request) { say(w, `{"result":{"bytes":12}}`) },
		},
		{"it is busy", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newFixture(t)
			e := serve(t, time.Second, func(n int64, w http.ResponseWriter, r *http.Request, asked engineserver.Request) {
				if n == 1 {
					c.trouble(w, r)
					return
				}
				finish(t, w, asked)
			})
			stop := s.start(by(e))
			if j := s.awaitEnd(s.submit("clip", 0)); j.Status != job.Completed || j.Runs != 2 {
				t.Errorf("got %s after %d runs, %+v", j.Status, j.Runs, j.Failure)
			}
			s.wantClean(stop)
		})
	}
}

// A server that fails each time ends the job, and the worker goes on with the
// next.
func TestAnEngineServerThatFailsEachTime(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	e := serve(t, time.Minute, func(n int64, w http.ResponseWriter, _ *http.Request, asked engineserver.Request) {
		if n <= job.MaxRuns {
			panic(http.ErrAbortHandler)
		}
		finish(t, w, asked)
	})
	s.start(by(e))
	s.wantFailure(s.submit("clip", 0), job.EngineError, "in the middle of the edit")
	if j := s.awaitEnd(s.submit("clip", 0)); j.Status != job.Completed || j.Runs != 1 {
		t.Errorf("got %+v", j)
	}
}

// The client reads what a server says about an input, after one run.
func TestAnEngineServersRefusal(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	e := serve(t, time.Minute, func(_ int64, w http.ResponseWriter, _ *http.Request, _ engineserver.Request) {
		say(w, `{"error":{"code":"invalid_input","message":"The video has no picture.","retryable":false}}`)
	})
	s.start(by(e))
	id := s.submit("clip", 0)
	s.wantFailure(id, job.InvalidInput, "no picture")
	if j := s.awaitEnd(id); j.Runs != 1 {
		t.Errorf("%d runs", j.Runs)
	}
}

// A drain closes the connection, which stops the server, and releases the job
// as if its run had not started.
func TestADrainStopsTheEngineServer(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	running, left := make(chan struct{}), make(chan struct{})
	e := serve(t, time.Minute, func(n int64, w http.ResponseWriter, r *http.Request, asked engineserver.Request) {
		if n > 1 {
			finish(t, w, asked)
			return
		}
		say(w, `{"progress":0.1}`)
		close(running)
		<-r.Context().Done()
		close(left)
	})
	id := s.submit("clip", 0)
	stop := s.start(by(e))
	patience.Receive(t, "running", running)
	s.wantClean(stop)
	patience.Receive(t, "left", left)
	if j := s.await(id, "there", func(job.Job) bool { return true }); j.Status != job.Processing || j.Runs != 0 {
		t.Fatalf("after a drain the job is %s with %d runs", j.Status, j.Runs)
	}
	s.start(by(e))
	if j := s.awaitEnd(id); j.Status != job.Completed || j.Runs != 1 {
		t.Errorf("got %+v", j)
	}
}

// A worker that loses its lease stops its engine server; the job then belongs
// to the other worker.
func TestALostLeaseStopsTheEngineServer(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	left := make(chan struct{})
	e := serve(t, time.Minute, func(n int64, w http.ResponseWriter, r *http.Request, asked engineserver.Request) {
		if n > 1 {
			finish(t, w, asked)
			return
		}
		say(w, `{"progress":0.1}`)
		<-r.Context().Done()
		close(left)
	})
	id := s.submit("clip", 0)
	s.start(by(e), shortLease, func(c *worker.Config) { c.Queue = silent{s.queue} })
	patience.Receive(t, "left", left)
	if j := s.awaitEnd(id); j.Status != job.Completed || j.Runs != 2 {
		t.Errorf("got %+v", j)
	}
}

// slow is a blob store whose writes take longer than a lease.
type slow struct {
	blob.Store
	leases *atomic.Int64
	enough chan struct{}
}

func (s slow) Put(ctx context.Context, name string, r io.Reader) (int64, error) {
	select {
	case <-s.enough:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	return s.Store.Put(ctx, name, r)
}

// counting counts extensions, and closes enough after so many that the first
// lease has ended.
type counting struct {
	worker.Queue
	slow slow
}

func (q counting) Receive(ctx context.Context, lane job.Lane, lease time.Duration) (worker.Delivery, error) {
	d, err := q.Queue.Receive(ctx, lane, lease)
	return countingDelivery{d, q.slow}, err
}

type countingDelivery struct {
	worker.Delivery
	slow slow
}

func (d countingDelivery) Extend(ctx context.Context, lease time.Duration) error {
	if d.slow.leases.Add(1) == 4 {
		close(d.slow.enough)
	}
	return d.Delivery.Extend(ctx, lease)
}

// A result that takes longer to store than a lease lasts is stored by the run
// that made it.
func TestASlowUploadKeepsTheLease(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	store := slow{s.blobs, new(atomic.Int64), make(chan struct{})}
	id := s.submit("clip", 0)
	runs := 0
	s.start(func(ctx context.Context, spec engine.Spec, progress func(engine.Progress)) error {
		runs++
		return succeed(ctx, spec, progress)
	}, shortLease, func(c *worker.Config) { c.Blobs, c.Queue = store, counting{s.queue, store} })
	if j := s.awaitEnd(id); j.Status != job.Completed || j.Runs != 1 || runs != 1 {
		t.Errorf("got %+v after %d runs", j, runs)
	}
}
