package realtime_test

import (
	"context"
	"errors"
	"image"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/session"
	"cutroom/shared/domain/usage"
	"cutroom/shared/engine"
	"cutroom/shared/service/realtime"
	"cutroom/shared/testkit/await"
	"cutroom/shared/testkit/busytest"
)

func TestTicksCountTheSeconds(t *testing.T) {
	w := newWorld(t, setup{})
	began := time.Now()
	c := w.open("gen-2.5", studio)
	last := int64(0)
	for tick := range int64(3) {
		m := c.any()
		if m.Type != "generation_tick" || m.Seconds == nil {
			t.Fatalf("tick %d: %+v", tick+1, m)
		}
		// The tick may be late.
		if s := *m.Seconds; s < max(last, tick+1) || s > int64(time.Since(began)/time.Second) {
			t.Errorf("tick %d has %d seconds, the last one %d", tick+1, s, last)
		}
		last = *m.Seconds
	}
}

func TestMaximumDurationEndsSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	c := w.open("gen-2.5", w.mint(studio, credential.Scope{MaxSession: 2 * time.Second}, time.Minute))
	w.later.Store(int64(time.Minute)) // lets the token expire
	ended := c.ends("max_session_duration", websocket.StatusNormalClosure, "Maximum session duration reached.")
	if ended.Seconds == nil || *ended.Seconds < 2 {
		t.Errorf("ended after %v seconds", ended.Seconds)
	}
	w.active("studio", 0)
}

func TestRevokedKeyEndsItsSessions(t *testing.T) {
	w := newWorld(t, setup{times: realtime.Times{Revocation: 50 * time.Millisecond}})
	parent := w.newKey("ck_parent_key")
	own, minted := w.open("gen-2.5", parent), w.open("gen-2.5", w.mint(parent, credential.Scope{}, time.Minute))
	other := w.open("gen-2.5", studio)
	w.revoke(parent)
	for _, c := range []*client{own, minted} {
		c.ends("key_revoked", websocket.StatusPolicyViolation, "Invalid API key")
	}
	other.painted(colorOf(""))
	w.active("studio", 1)
}

func TestExpiredKeyEndsItsSessions(t *testing.T) {
	w := newWorld(t, setup{times: realtime.Times{Revocation: 50 * time.Millisecond}})
	parent := w.newKey("ck_parent_key", func(k *credential.Key) { k.ExpiresAt = k.CreatedAt.Add(time.Minute) })
	own, minted := w.open("gen-2.5", parent), w.open("gen-2.5", w.mint(parent, credential.Scope{}, time.Minute))
	other := w.open("gen-2.5", studio)
	w.later.Store(int64(time.Minute))
	for _, c := range []*client{own, minted} {
		c.ends("key_revoked", websocket.StatusPolicyViolation, "Invalid API key")
	}
	other.painted(colorOf(""))
	w.active("studio", 1)
}

func TestShutdownEndsSessions(t *testing.T) {
	w := newWorld(t, setup{})
	var all []*client
	for range 5 {
		all = append(all, w.open("gen-2.5", studio))
	}
	stopped := make(chan struct{})
	go func() {
		w.stop()
		close(stopped)
	}()
	for _, c := range all {
		c.ends("server_stopping", websocket.StatusGoingAway, "The server is stopping.")
	}
	await.Receive(t, "stopped", stopped)
	w.active("studio", 0)
	if n := strings.Count(w.log.String(), `reason=server_stopping`); n != 5 {
		t.Errorf("%d such sessions ended in the log", n)
	}
}

func TestShutdownDoesNotWaitForClients(t *testing.T) {
	w := newWorld(t, setup{times: realtime.Times{Close: 100 * time.Millisecond, Drain: time.Second}})
	w.open("gen-2.5", studio) // stops reading
	before := func(ctx context.Context) { <-ctx.Done() }
	w.engine.before.Store(&before)
	busy := w.open("gen-2.5", studio)
	busy.show(plain(32, 16, red))
	w.stop()
	w.active("studio", 0)
}

func TestIdleSessionsEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{times: realtime.Times{Idle: 30 * time.Second}})
	c, busy := w.open("gen-2.5", studio), w.open("gen-2.5", studio)
	idle, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			_ = busy.conn.Write(context.Background(), websocket.MessageText, []byte(`{"type":"prompt","prompt":"x"}`))
			select {
			case <-idle:
				return
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
	c.ends("idle", websocket.StatusNormalClosure, "The session was idle.")
	close(idle)
	await.Receive(t, "done", done)
	w.active("studio", 1)
}

func TestHalfOpenConnectionIsClosed(t *testing.T) {
	t.Parallel()
	busytest.Try(t, 10*time.Second, func(pong time.Duration) error {
		w := newWorld(t, setup{
			times: realtime.Times{Ping: 100 * time.Millisecond, Pong: pong, Close: 100 * time.Millisecond},
		})
		alive := w.open("gen-2.5", studio)
		reading := make(chan struct{})
		go func() {
			defer close(reading)
			for {
				if _, _, err := alive.conn.Read(context.Background()); err != nil {
					return
				}
			}
		}()
		w.open("gen-2.5", studio) // does not read, so it never replies to pings
		lost := false
		await.Until(t, "one session ends", func() bool {
			n, err := w.records.Active(t.Context(), "studio")
			if err != nil {
				t.Fatal(err)
			}
			select {
			case <-reading:
				lost = true
			default:
			}
			return n == 1 || lost
		})
		if lost {
			return errors.New("the responsive session ended too")
		}
		alive.drop()
		<-reading
		w.active("studio", 0)
		return nil
	})
}

func TestSuspendedProcessEndsItsSessions(t *testing.T) {
	w := newWorld(t, setup{})
	begun := make(chan struct{})
	before := func(context.Context) {
		close(begun)
		w.asleep.Add(int64(session.FenceAfter))
	}
	w.engine.before.Store(&before)
	c := w.open("gen-2.5", studio)
	c.show(plain(32, 16, red))
	await.Receive(t, "begun", begun) // by now, the process has been suspended during an edit
	w.engine.before.Store(nil)
	c.ends("session_lost", websocket.StatusInternalError, "The session was lost. Connect again.")
	w.active("studio", 0)
	w.ready() // there is a new lease
	w.open("gen-2.5", studio).painted(colorOf(""))
}

// The process is suspended during a write, after the system has accepted the message. The client still learns that
// its session was lost.
func TestSuspendedProcessReportsLostSession(t *testing.T) {
	t.Parallel()
	const writeTime = time.Second
	var w *world
	var stop atomic.Bool
	w = newWorld(t, setup{times: realtime.Times{Write: writeTime}, sent: func(size int) {
		if size > 256 && stop.CompareAndSwap(true, false) { // this is a frame, because ticks are smaller
			w.asleep.Add(int64(session.FenceAfter))
			time.Sleep(3 * writeTime)
		}
	}})
	c := w.open("gen-2.5", studio)
	stop.Store(true)
	c.painted(colorOf(""))
	c.ends("session_lost", websocket.StatusInternalError, "The session was lost. Connect again.")
}

// huge is an engine whose frames are larger than a connection's buffers.
type huge struct{}

func (huge) Open(context.Context, *catalog.Model) (engine.LiveEditor, error) {
	return &hugeEditor{}, nil
}

type hugeEditor struct{ canvas }

// Edit returns noise, which needs more than a byte per pixel as JPEG.
func (*hugeEditor) Edit(context.Context, *engine.Picture) (*engine.Picture, error) {
	noise := filled(image.Rect(0, 0, 4500, 4500), red)
	_, _ = rand.NewChaCha8([32]byte{}).Read(noise.Y)
	return noise, nil
}

// The client is disconnected even if it does not read.
func TestLostSessionDisconnectsItsClient(t *testing.T) {
	w := newWorld(t, setup{engine: huge{}, times: realtime.Times{Write: time.Hour, Close: 50 * time.Millisecond}})
	c := w.open("gen-2.5", studio)
	c.show(plain(32, 16, red)) // the client does not read the response
	w.asleep.Add(int64(session.FenceAfter))
	await.Until(
		t, "the connection has ended", func() bool { return strings.Contains(w.log.String(), "reason=session_lost") },
	)
}

func TestBusyEngineDoesNotHoldSlot(t *testing.T) {
	begun, release := make(chan struct{}), make(chan struct{})
	w := newWorld(t, setup{engine: &slow{begun: begun, release: release}})
	defer close(release)
	c := w.open("gen-2.5", studio)
	c.say(`{"type":"prompt","prompt":"x"}`)
	await.Receive(t, "begun", begun)
	w.active("studio", 1)
	c.drop()
	w.active("studio", 0)
}

// slow is an engine that blocks while it prepares a prompt, until it is released.
type slow struct {
	painter
	begun, release chan struct{}
}

func (s *slow) Open(context.Context, *catalog.Model) (engine.LiveEditor, error) {
	return &slowEditor{canvas{painter: &s.painter}, s}, nil
}

type slowEditor struct {
	canvas
	engine *slow
}

func (e *slowEditor) SetPrompt(context.Context, string) (engine.Outcome, error) {
	close(e.engine.begun)
	<-e.engine.release
	return engine.Outcome{}, nil
}

func TestUsageIsRecorded(t *testing.T) {
	w := newWorld(t, setup{times: realtime.Times{Usage: 300 * time.Millisecond}})
	began := time.Now()
	today := w.now()
	total := func(model string) usage.Counts {
		t.Helper()
		return w.used(model, today)
	}
	first, second := w.open("gen-latest", studio), w.open("gen-2.5", w.mint(studio, credential.Scope{}, time.Minute))
	other := w.open("gen-2.1", studio)
	await.Until(t, "the usage of open sessions is recorded", func() bool {
		return total("gen-2.5").SessionSeconds >= 2 && total("gen-2.1").SessionSeconds >= 1
	})
	for _, c := range []*client{first, second, other} {
		c.leave()
	}
	w.active("studio", 0)
	w.stop()
	if sum := total("gen-2.5"); sum.Requests != 2 || sum.SessionSeconds < 2 ||
		sum.SessionSeconds > 2*int64(time.Since(began)/time.Second+1) {
		t.Errorf("usage of two sessions of one model: %+v", sum)
	}
	if sum := total("gen-2.1"); sum.Requests != 1 || sum.SessionSeconds < 1 {
		t.Errorf("one session of the other: %+v", sum)
	}
}
