package main_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/coder/websocket"
)

// waiting is a client in the line, which reads until its session begins.
type waiting struct {
	*websocket.Conn
	placed chan struct{}
	// served is closed when the session begins, gone when the connection has ended.
	served, gone chan struct{}
}

// wait connects to an instance and waits until the client has a place in the line.
func (f *fleet) wait(i *instance) *waiting {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), patience)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, "ws://"+i.address+"/v1/stream?model=gen-2.5&queue=true&api_key="+key, nil)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { conn.CloseNow() })
	w := &waiting{conn, make(chan struct{}), make(chan struct{}), make(chan struct{})}
	go w.read()
	select {
	case <-w.placed:
	case <-w.gone:
		f.t.Fatal("a client got no place in the line")
	case <-ctx.Done():
		f.t.Fatal("a client waits for its place")
	}
	return w
}

func (w *waiting) read() {
	defer close(w.gone)
	placed := sync.OnceFunc(func() { close(w.placed) })
	for {
		_, content, err := w.Read(context.Background())
		if err != nil {
			return
		}
		var message struct{ Type string }
		switch _ = json.Unmarshal(content, &message); message.Type { // which has no type otherwise
		case "queue_position":
			placed()
		case "session_started":
			close(w.served)
		}
	}
}

// Many wait at three instances, one of which is killed: those of the others are served, in
// the order in which they came.
func TestTheLineAcrossInstances(t *testing.T) {
	t.Parallel()
	const limit, clients = 4, 90
	f := newFleet(t, limit)
	instances := []*instance{f.start(), f.start(), f.start()}
	var holders []*client
	for range limit {
		holders = append(holders, f.open(instances[0]))
	}
	var line []*waiting
	for n := range clients {
		line = append(line, f.wait(instances[n%len(instances)]))
	}
	f.isFull(instances[1])
	f.becomes(limit)

	var mu sync.Mutex
	left := map[int]bool{} // those who are alive and were not served yet
	var served, wrong []string
	var all sync.WaitGroup
	for n, w := range line {
		killed := n%len(instances) == 1
		if !killed {
			left[n] = true
		}
		all.Go(func() {
			select {
			case <-w.served:
			case <-w.gone:
				if !killed {
					t.Errorf("client %d was not served", n)
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
			// Who is served has fewer before it than there are slots: some may have theirs, and
			// have not heard of it.
			if before >= limit {
				wrong = append(wrong, fmt.Sprintf("%d before %d others", n, before))
			}
			mu.Unlock()
			_ = w.Close(websocket.StatusNormalClosure, "") // which says it, or is too late to
		})
	}
	instances[1].kill()
	for _, holder := range slices.Backward(holders) {
		holder.leave()
	}
	all.Wait()
	if len(wrong) > 0 || len(left) > 0 {
		t.Errorf("served were %v; out of order: %v; not served: %d", served, wrong, len(left))
	}
	f.becomes(0)
}
