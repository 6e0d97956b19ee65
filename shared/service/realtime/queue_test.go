package realtime_test

import (
	"net/url"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"cutroom/shared/domain/credential"
	"cutroom/shared/service/realtime"
	"cutroom/shared/testkit/await"
)

// dialQueue connects with the query parameter queue: "true", "false", or "" to omit it.
func (w *world) dialQueue(key, queue string) *client {
	w.t.Helper()
	query := url.Values{"model": {"gen-2.5"}, "api_key": {key}}
	if queue != "" {
		query.Set("queue", queue)
	}
	return w.dialWith(query)
}

// queues connects a client and waits until it has a queue position.
func (w *world) queues(key string) *client {
	w.t.Helper()
	c, m := first(func() *client { return w.dialQueue(key, "true") })
	if m.Type != "queue_position" {
		w.t.Fatalf("got %+v, want a place in the queue", m)
	}
	return c
}

// waits expects the given queue position and size, possibly after earlier positions.
func (c *client) waits(position, size int) {
	c.t.Helper()
	for {
		m := c.next()
		if m.Type != "queue_position" {
			c.t.Fatalf("got %+v, want a place in the queue", m)
		}
		if m.Position == position && m.Size == size {
			return
		}
	}
}

// begins expects a session, possibly after queue positions.
func (c *client) begins() {
	c.t.Helper()
	for {
		switch m := c.next(); m.Type {
		case "queue_position":
		case "session_started":
			return
		default:
			c.t.Fatalf("got %+v, want a session", m)
		}
	}
}

// rejected expects a rejection with the given code and text, possibly after queue positions.
func (c *client) rejected(code websocket.StatusCode, text string) {
	c.t.Helper()
	for {
		m := c.next()
		if m.Type == "queue_position" {
			continue
		}
		if m.Type != "error" || m.Error != text {
			c.t.Errorf("got %+v, want the error %q", m, text)
		}
		break
	}
	c.ends("", code, text)
}

const isFull = "Concurrent session limit reached."

// Waiting clients do not count as sessions.
func TestQueueServesInOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{limit: 1, queue: 3, times: realtime.Times{Ping: time.Hour}})
	holder := w.open("gen-2.5", studio)
	first := w.dialQueue(studio, "true")
	first.waits(1, 1)
	second, third := w.queues(studio), w.queues(studio)
	third.waits(3, 3)
	w.active("studio", 1)

	w.dialQueue(studio, "").rejected(websocket.StatusTryAgainLater, isFull)
	w.dialQueue(studio, "false").rejected(websocket.StatusTryAgainLater, isFull)
	w.dialQueue(studio, "true").rejected(websocket.StatusTryAgainLater, isFull) // the queue is full
	w.dialQueue(rival, "true").begins()

	second.leave()
	third.waits(2, 2)
	holder.leave()
	first.begins()
	third.waits(1, 1)
	first.painted(colorOf(""))
	w.active("studio", 1)
	first.drop()
	third.begins()
	third.leave()
	w.active("studio", 0)
	await.Until(t, "the log reports the waits", func() bool {
		log := w.log.String()
		return strings.Count(log, `msg="client is waiting for a session"`) == 4 &&
			strings.Count(log, `msg="wait ended"`) == 4 && strings.Count(log, "outcome=session") == 2
	})
}

// While a client waits, its frames are dropped, but its other messages are kept.
func TestMessagesWhileWaitingAreKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{limit: 1, times: realtime.Times{Ping: time.Hour}})
	holder := w.open("gen-2.5", studio)
	c := w.dialQueue(studio, "true")
	c.waits(1, 1)
	c.show([]byte("no JPEG at all"))
	c.say(`{"type":"prompt","prompt":"red"}`)
	c.say(`{"type":"set_image","image_data":null,"prompt":"blue"}`)
	// Positions are still reported after the messages.
	c.waits(1, 1)
	c.waits(1, 1)
	holder.leave()
	c.begins()
	c.ack("prompt_ack", "")
	c.ack("set_image_ack", "")
	c.painted(colorOf("blue"))
	c.say(`{"type":"prompt","prompt":"green"}`)
	c.ack("prompt_ack", "")
	c.painted(colorOf("green"))
}

func TestKeptMessagesCountAsMemory(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{limit: 1, queue: 1, textMemory: 400_000, times: realtime.Times{Ping: time.Hour}})
	holder, message := w.open("gen-2.5", studio), `{"type":"`+strings.Repeat("x", 60_000)+`"}`
	for range 2 { // the second time, the memory has been released
		c := w.dialQueue(studio, "true")
		c.waits(1, 1)
		c.say(message)
		c.say(message)
		m := c.next()
		for m.Type == "queue_position" {
			m = c.next()
		}
		if m.Error != "The server is busy. Try again." {
			t.Errorf("got %+v", m)
		}
		holder.leave()
		c.begins()
		if m := c.next(); !strings.HasPrefix(m.Error, "Unknown message type.") {
			t.Errorf("the kept message: got %+v", m)
		}
		holder = c
	}
}

func TestQueuedSessionEndsForTheSameReasons(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{limit: 1, times: realtime.Times{Ping: time.Hour, Revocation: 50 * time.Millisecond}})
	parent := w.newKey("ck_parent_key")
	holder := w.open("gen-2.5", studio)
	revoked, minted := w.queues(parent), w.queues(w.mint(parent, credential.Scope{}, time.Minute))
	flood, large, stays := w.queues(studio), w.queues(studio), w.queues(studio)
	stays.waits(5, 5)
	w.revoke(parent)
	revoked.rejected(websocket.StatusPolicyViolation, "Invalid API key")
	minted.rejected(websocket.StatusPolicyViolation, "Invalid API key")
	// The server may disconnect before the entire message has arrived.
	_ = large.conn.Write(t.Context(), websocket.MessageBinary, make([]byte, 2<<20+1))
	large.rejected(websocket.StatusMessageTooBig, "The message is too large.")
	go flood.flood()
	for m := flood.next(); m.Error != "Too many messages"; m = flood.next() {
		if m.Type != "queue_position" && m.Error != "The session has not started. Wait for session_started." {
			t.Fatalf("got %+v", m)
		}
	}
	flood.ends("", websocket.StatusPolicyViolation, "Too many messages")
	stays.waits(1, 1)
	w.active("studio", 1)
	stopped := make(chan struct{})
	go func() {
		w.stop()
		close(stopped)
	}()
	stays.rejected(websocket.StatusGoingAway, "The server is stopping.")
	holder.ends("server_stopping", websocket.StatusGoingAway, "The server is stopping.")
	await.Receive(t, "stopped", stopped)
	w.active("studio", 0)
}

// A client that joins a room waits in the queue unless it opts out.
func TestJoinWaitsInQueue(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{limit: 1, webrtc: true, times: realtime.Times{Ping: time.Hour, Join: await.Max}})
	w.open("gen-2.5", studio)
	c := w.dialQueue(studio, "")
	c.say(`{"type":"livekit_join","passthrough":true}`)
	c.say(`{"type":"set_image","image_data":null,"prompt":null}`)
	c.waits(1, 1)
	for _, first := range []string{
		`{"type":"livekit_join","queue":false}`, `{"type":"prompt","prompt":"red"}`, `no JSON`,
	} {
		c := w.dialQueue(studio, "")
		c.say(first)
		c.rejected(websocket.StatusTryAgainLater, isFull)
	}
	w.dialQueue(studio, "false").rejected(websocket.StatusTryAgainLater, isFull)

	hurried := newWorld(t, setup{limit: 1, webrtc: true, times: realtime.Times{Join: time.Millisecond}})
	hurried.open("gen-2.5", studio)
	hurried.dialQueue(studio, "").rejected(websocket.StatusTryAgainLater, isFull)
}

// Some clients give up after 15 seconds in the queue and connect again.
func TestReturningClientKeepsItsPlace(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{limit: 1, queue: 3, times: realtime.Times{Ping: time.Hour}})
	holder := w.open("gen-2.5", studio)
	token := w.mint(studio, credential.Scope{}, time.Minute)
	other := w.mint(studio, credential.Scope{}, time.Minute)
	first := w.queues(token)
	second := w.queues(studio)
	second.waits(2, 2)
	first.leave()
	second.waits(1, 1)
	third := w.queues(other) // a token of the same key is another client
	third.waits(2, 2)
	w.dialQueue(other, "true").rejected(websocket.StatusTryAgainLater, isFull) // the place of the first is kept
	first = w.queues(token)
	first.waits(1, 3)
	third.waits(3, 3)
	first.leave()
	third.waits(2, 2)
	holder.leave()
	second.begins() // a slot does not wait for a client that has left
	first = w.queues(token)
	first.waits(1, 2)
	second.leave()
	first.begins()
}

func TestLeavingTheQueueLeavesNothingBehind(t *testing.T) {
	w := newWorld(t, setup{limit: 1, queue: 200, times: realtime.Times{Ping: time.Hour, Close: 300 * time.Millisecond}})
	holder := w.open("gen-2.5", studio)
	before := runtime.NumGoroutine()
	for range 3 {
		var crowd []*client
		for range 40 {
			crowd = append(crowd, w.queues(studio))
		}
		var going sync.WaitGroup
		for i, c := range crowd {
			going.Go(func() {
				if i%2 == 0 {
					c.drop()
				} else {
					c.leave()
				}
			})
		}
		going.Wait()
	}
	last := w.dialQueue(studio, "true")
	last.waits(1, 1)
	holder.leave()
	last.begins()
	// Allow a few more goroutines, because the first session may have started some after they were counted.
	await.Until(t, "the goroutines have ended", func() bool { return runtime.NumGoroutine() <= before+20 })
}
