package realtime_test

import (
	"bufio"
	"image/color"
	"net"
	"net/http"
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

func TestMisbehaviorEndsSession(t *testing.T) {
	w := newWorld(t, setup{})
	t.Run("a frame that is too large", func(t *testing.T) {
		c := w.open("gen-2.5", studio)
		c.t = t
		// The server may disconnect before the entire message has arrived.
		_ = c.conn.Write(t.Context(), websocket.MessageBinary, make([]byte, 2<<20+1))
		c.ends("message_too_large", websocket.StatusMessageTooBig, "The message is too large.")
	})
	t.Run("a text that is too large", func(t *testing.T) {
		c := w.open("gen-2.5", studio)
		c.t = t
		_ = c.conn.Write(t.Context(), websocket.MessageText,
			[]byte(`{"type":"prompt","prompt":"`+strings.Repeat("x", 14<<20)+`"}`))
		if m := c.next(); m.closed == nil || m.closed.Code != websocket.StatusMessageTooBig {
			t.Errorf("got %+v", m)
		}
	})
	t.Run("a flood of prompts", func(t *testing.T) {
		c := w.open("gen-2.5", studio)
		c.t = t
		go c.flood()
		refused := 0
		m := c.next()
		for ; m.Type == "prompt_ack"; m = c.next() {
			if !*m.Success {
				refused++
				if m.Error != "Too many changes. Slow down." {
					t.Fatalf("got %+v", m)
				}
			}
		}
		if refused == 0 || m.Reason != "too_many_messages" {
			t.Errorf("%d prompts were refused, and then %+v", refused, m)
		}
		c.ends("", websocket.StatusPolicyViolation, "Too many messages")
	})
	w.active("studio", 0)
}

// A message that is never completed ends its connection. Until then, it leaves memory for other accounts.
func TestStalledMessageEndsConnection(t *testing.T) {
	t.Parallel()
	const most = 4 << 20
	w := newWorld(t, setup{limit: 1, queue: 1, textMemory: most, times: realtime.Times{
		Ping: time.Hour, Message: 3 * time.Second,
	}})
	// stall starts a message, and waits until its bytes have arrived.
	var reading sync.WaitGroup
	stall := func(c *client, bytes int, read func()) {
		reading.Go(read)
		writer, err := c.conn.Writer(t.Context(), websocket.MessageText)
		if err == nil {
			_, err = writer.Write(make([]byte, bytes))
		}
		if err == nil {
			err = c.conn.Ping(t.Context())
		}
		if err != nil {
			t.Error(err)
		}
	}
	long := `","padding":"` + strings.Repeat("x", 2*64<<10) + `"}`
	other, _, waiting := w.open("gen-2.5", rival), w.open("gen-2.5", studio), w.queues(studio)
	for range 2 * most / 100_000 { // frames are dropped
		waiting.show(append(plain(32, 16, color.White), make([]byte, 100_000)...))
	}
	waiting.say(`{"type":"prompt","prompt":"red` + strings.Repeat(" ", 1<<20) + long)
	for m := waiting.next(); m.Error != "The session has not started. Wait for session_started."; m = waiting.next() {
		if m.Type != "queue_position" {
			t.Fatalf("got %+v", m)
		}
	}
	const late = "A message did not arrive in time."
	for _, account := range []string{"a", "b", "c"} {
		c := w.open("gen-2.5", w.newKey("ck_key_of_"+account, func(k *credential.Key) { k.Account = account }))
		stall(c, most-1000, func() { c.ends("idle", websocket.StatusNormalClosure, late) })
	}
	other.say(`{"type":"prompt","prompt":"red` + long)
	other.ack("prompt_ack", "")
	stall(waiting, 10, func() { waiting.rejected(websocket.StatusNormalClosure, late) })
	reading.Wait()
}

func TestHostileClientsLeaveNothingBehind(t *testing.T) {
	w := newWorld(t, setup{limit: 20, times: realtime.Times{
		Ping: 200 * time.Millisecond, Pong: 500 * time.Millisecond, Write: time.Second, Close: 300 * time.Millisecond,
	}})
	http.DefaultClient.CloseIdleConnections()
	goroutines, memory := level()
	var hostile sync.WaitGroup
	for i := range 120 {
		hostile.Go(func() { attack(t, w, i) })
	}
	hostile.Wait()
	w.active("studio", 0)
	http.DefaultClient.CloseIdleConnections()
	await.Until(t, "the goroutines have ended", func() bool { now, _ := level(); return now <= goroutines+2 })
	await.Until(t, "the memory is given back", func() bool { _, now := level(); return now <= memory+4<<20 })
	// Retry, because a stalled machine does not reply to pings in time.
	await.Until(t, "a session paints", w.paints)
}

// paints reports whether a new session edits a frame.
func (w *world) paints() bool {
	w.t.Helper()
	c := w.dial("gen-2.5", studio)
	defer c.drop()
	for shown := false; ; shown = true {
		kind, _, err := c.conn.Read(w.t.Context())
		if err != nil {
			return false
		}
		if kind == websocket.MessageBinary {
			return true
		}
		if !shown && c.conn.Write(w.t.Context(), websocket.MessageBinary, plain(32, 16, color.White)) != nil {
			return false
		}
	}
}

func level() (goroutines int, memory uint64) {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return runtime.NumGoroutine(), stats.HeapAlloc
}

// attack runs a hostile client until the server has closed the connection.
func attack(t *testing.T, w *world, number int) {
	conn, err := net.Dial("tcp", w.address)
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(await.Max))
	upgrade := upgradeRequest("gen-2.5&api_key=" + studio)
	send := func(parts ...string) {
		for _, part := range parts {
			// The write fails once the server has closed the connection.
			if _, err := conn.Write([]byte(part)); err != nil {
				return
			}
		}
	}
	const mask = "\x00\x00\x00\x00" // clients must mask their frames
	switch number % 8 {
	case 0: // no API key, and then silence
		send(strings.Replace(upgrade, studio, "", 1))
	case 1: // an incomplete handshake
		send(upgrade[:60])
		return
	case 2: // silence after the handshake
		send(upgrade)
	case 3: // a giant frame, announced but never sent
		send(upgrade, "\x82\xff\x7f\xff\xff\xff\xff\xff\xff\xff"+mask, strings.Repeat("x", 1<<16))
	case 4: // a complete but oversized frame
		send(upgrade, "\x82\xff\x00\x00\x00\x00\x00\x40\x00\x00"+mask, strings.Repeat("x", 4<<20))
	case 5: // an unmasked frame
		send(upgrade, "\x81\x05hello")
	case 6: // a flood of invalid JSON, whose errors are not read
		send(upgrade)
		for range 400 {
			send("\x81\x85" + mask + "hello")
		}
	case 7: // fragments that never end
		send(upgrade, "\x01\x85"+mask+"hello")
		for range 100 {
			send("\x00\x85" + mask + "hello")
		}
	}
	if number%16 < 8 {
		// Half of the clients never read, so only a timeout ends them.
		time.Sleep(2 * time.Second)
		return
	}
	reader := bufio.NewReader(conn)
	for {
		if _, err := reader.Discard(1); err != nil {
			return
		}
	}
}
