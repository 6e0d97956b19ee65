package main_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"cutroom/shared/domain/session"
	"cutroom/shared/platform/clock"
	"cutroom/shared/testkit/await"
)

// waiting is a client in the queue. It reads until its session starts.
type waiting struct {
	*websocket.Conn
	placed chan struct{}
	// served is closed when the session begins. gone is closed when the connection has ended; err is then the reason.
	served, gone chan struct{}
	err          error
}

// wait connects to an instance and waits until the client is in the queue.
func (f *fleet) wait(i *instance) *waiting {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), await.Max)
	defer cancel()
	for {
		conn, err := dial(ctx, i, "&queue=true")
		if err != nil {
			f.t.Fatal(err)
		}
		f.t.Cleanup(func() { conn.CloseNow() })
		w := &waiting{Conn: conn, placed: make(chan struct{}), served: make(chan struct{}), gone: make(chan struct{})}
		go w.read()
		select {
		case <-w.placed:
			return w
		case <-w.gone:
			if !closedFor(w.err, errNotNow) {
				f.t.Fatalf("a client got no place in the queue: %v", w.err)
			}
		case <-ctx.Done():
			f.t.Fatal("the client got no place in time")
		}
	}
}

func (w *waiting) read() {
	defer close(w.gone)
	placed := sync.OnceFunc(func() { close(w.placed) })
	for {
		_, content, err := w.Read(context.Background())
		if err != nil {
			w.err = err
			return
		}
		var message struct{ Type string }
		switch _ = json.Unmarshal(content, &message); message.Type { // Type is empty for other messages
		case "queue_position":
			placed()
		case "session_started":
			close(w.served)
		}
	}
}

// watch returns a function that returns the longest stall of any instance or the test.
func watch(t *testing.T, instances ...*instance) (longest func() time.Duration) {
	var mu sync.Mutex
	var most time.Duration
	answered := make([]time.Time, len(instances))
	note := func(n int) {
		mu.Lock()
		defer mu.Unlock()
		most, answered[n] = max(most, time.Since(answered[n])), time.Now()
	}
	for n, i := range instances {
		answered[n] = time.Now()
		go func() {
			for clock.Wait(t.Context(), 100*time.Millisecond) {
				if answer, err := http.Get("http://" + i.address + "/healthz"); err == nil {
					answer.Body.Close()
					note(n)
				}
			}
		}()
	}
	return func() time.Duration {
		for n := range instances {
			note(n) // it may still be stalling
		}
		return most
	}
}

// Many clients wait at three instances, one of which is killed. The other instances' clients are
// served in order of arrival.
func TestQueueSurvivesKilledInstance(t *testing.T) {
	t.Parallel()
	// A stall shorter than this cannot cost an instance its tickets, even if their renewal was due when the stall
	// began.
	const loses = session.TicketLife - 2*session.RenewTicketsEvery
	for {
		wrong, still := serveQueue(t)
		if len(wrong) == 0 {
			return
		}
		if still < loses {
			t.Fatalf("the order of the queue: %v", wrong)
		}
		t.Logf("an instance stalled for %s and lost places: %v", still, wrong)
	}
}

func serveQueue(t *testing.T) (wrong []string, still time.Duration) {
	const limit, clients = 4, 90
	f := newFleet(t, limit)
	instances := []*instance{f.start(), f.start(), f.start()}
	var holders []*client
	for range limit {
		holders = append(holders, f.open(instances[0]))
	}
	var queue []*waiting
	for n := range clients {
		queue = append(queue, f.wait(instances[n%len(instances)]))
	}
	f.isFull(instances[1])
	f.becomes(limit)
	longest := watch(t, instances[0], instances[2])

	var mu sync.Mutex
	left := map[int]bool{} // the other instances' clients that have not been served yet
	var served []string
	var all sync.WaitGroup
	for n, w := range queue {
		killed := n%len(instances) == 1
		if !killed {
			left[n] = true
		}
		all.Go(func() {
			select {
			case <-w.served:
			case <-w.gone:
				if !killed {
					mu.Lock()
					delete(left, n)
					wrong = append(wrong, fmt.Sprintf("%d was not served: %v", n, w.err))
					mu.Unlock()
				}
				return
			}
			mu.Lock()
			before := 0
			for other := range left {
				if other < n {
					before++
				}
			}
			delete(left, n)
			served = append(served, fmt.Sprint(n))
			// Earlier clients are still in the map left if they have a slot but do not know it yet. There are fewer
			// of them than slots.
			if before >= limit {
				wrong = append(wrong, fmt.Sprintf("%d before %d others", n, before))
			}
			mu.Unlock()
			_ = w.Close(websocket.StatusNormalClosure, "") // fails if the connection has ended
		})
	}
	instances[1].kill()
	for _, holder := range slices.Backward(holders) {
		holder.leave()
	}
	all.Wait()
	f.becomes(0)
	t.Logf("served %v", served)
	return wrong, longest()
}
