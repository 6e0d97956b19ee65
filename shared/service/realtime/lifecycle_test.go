package realtime_test

import (
	"context"
	"errors"
	"fmt"
	"image"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"cutroom/shared/domain/audit"
	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/session"
	"cutroom/shared/domain/usage"
	"cutroom/shared/engine"
	"cutroom/shared/service/realtime"
	"cutroom/shared/testkit/busytest"
	"cutroom/shared/testkit/patience"
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

// A tick contains the engine's notice about frames while it applies.
func TestTicksIncludeNotice(t *testing.T) {
	t.Parallel()
	says := &critic{}
	w := newWorld(t, setup{engine: says})
	c := w.open("gen-2.5", studio)
	await := func(notice string) {
		t.Helper()
		patience.Await(t, fmt.Sprintf("a tick contains %q", notice), c.any,
			func(m message) bool { return m.Type == "generation_tick" && m.Notice == notice })
	}
	await("")
	says.notice.Store("No face shows.")
	await("No face shows.")
	says.notice.Store("")
	await("")
}

// critic is an engine with a notice that the test sets.
type critic struct{ notice atomic.Value }

func (c *critic) Open(context.Context, *catalog.Model) (engine.LiveEditor, error) {
	return &criticalEditor{critic: c}, nil
}

type criticalEditor struct {
	canvas
	critic *critic
}

func (e *criticalEditor) Notice() string {
	notice, _ := e.critic.notice.Load().(string)
	return notice
}

func TestMaximumDurationEndsSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	c := w.open("gen-2.5", w.mint(studio, credential.Scope{MaxSession: 2 * time.Second}, time.Minute))
	w.later.Store(int64(time.Minute)) // the token has expired
	ended := c.ends("max_session_duration", websocket.StatusNormalClosure, "Maximum session duration reached.")
	if ended.Seconds == nil || *ended.Seconds < 2 {
		t.Errorf("ended after %v seconds", ended.Seconds)
	}
	w.active("studio", 0)
}

// The sessions of the key and of its tokens end, and no others.
func TestRevokedKeyEndsItsSessions(t *testing.T) {
	w := newWorld(t, setup{times: realtime.Times{Revocation: 50 * time.Millisecond}})
	const parent = "ck_parent_key"
	key, err := credential.NewKey(parent, "studio", credential.DefaultTier, "", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.keys.CreateKey(t.Context(), audit.Operator(key.CreatedAt), key); err != nil {
		t.Fatal(err)
	}
	own, minted, other := w.open("gen-2.5", parent), w.open(
		"gen-2.5", w.mint(parent, credential.Scope{}, time.Minute),
	), w.open("gen-2.5", studio)
	if _, err := w.keys.RevokeKey(t.Context(), audit.Operator(time.Now()), key.ID); err != nil {
		t.Fatal(err)
	}
	for _, c := range []*client{own, minted} {
		c.ends("key_revoked", websocket.StatusPolicyViolation, "Invalid API key")
	}
	other.painted(colorOf(""))
	w.active("studio", 1)
}

// The sessions of the key's client tokens also end.
func TestExpiredKeyEndsItsSessions(t *testing.T) {
	w := newWorld(t, setup{times: realtime.Times{Revocation: 50 * time.Millisecond}})
	parent := w.limitedKey("ck_parent_key", func(k *credential.Key) { k.ExpiresAt = k.CreatedAt.Add(time.Minute) })
	own, minted := w.open("gen-2.5", parent), w.open("gen-2.5", w.mint(parent, credential.Scope{}, time.Minute))
	other := w.open("gen-2.5", studio)
	w.later.Store(int64(time.Minute))
	for _, c := range []*client{own, minted} {
		c.ends("key_revoked", websocket.StatusPolicyViolation, "Invalid API key")
	}
	other.painted(colorOf(""))
	w.active("studio", 1)
}

// During shutdown, the server notifies all sessions, closes them and frees their slots.
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
	patience.Receive(t, "stopped", stopped)
	w.active("studio", 0)
	if n := strings.Count(w.log.String(), `reason=server_stopping`); n != 5 {
		t.Errorf("%d such sessions ended in the log", n)
	}
}

// A client that does not reply delays the shutdown by at most Times.Drain.
func TestShutdownDoesNotWaitForClients(t *testing.T) {
	w := newWorld(t, setup{times: realtime.Times{Close: 100 * time.Millisecond, Drain: time.Second}})
	w.open("gen-2.5", studio) // does not read any more
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
	patience.Receive(t, "done", done)
	w.active("studio", 1)
}

// A client that disappeared without closing the connection loses its slot.
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
		w.open("gen-2.5", studio) // does not read, so it does not reply to pings
		eventually(t, "a session ends", func() bool {
			n, err := w.records.Active(t.Context(), "studio")
			if err != nil {
				t.Fatal(err)
			}
			return n < 2
		})
		select {
		case <-reading:
			return errors.New("the responsive session ended too")
		default:
		}
		w.active("studio", 1)
		alive.drop()
		<-reading
		w.active("studio", 0)
		return nil
	})
}

// A process that was suspended stops serving its sessions, however late it notices the suspension.
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
	patience.Receive(t, "begun", begun) // the process is suspended during an edit
	w.engine.before.Store(nil)
	c.ends("session_lost", websocket.StatusInternalError, "The session was lost. Connect again.")
	w.active("studio", 0)
	w.ready() // a new lease
	w.open("gen-2.5", studio).painted(colorOf(""))
}

// A process that was suspended during a send still reports the lost session to its client, because the system
// has accepted the message in time.
func TestSuspendedProcessReportsLostSession(t *testing.T) {
	t.Parallel()
	const writeTime = time.Second
	var w *world
	var stop atomic.Bool
	w = newWorld(t, setup{times: realtime.Times{Write: writeTime}, sent: func(size int) {
		if size > 256 && stop.CompareAndSwap(true, false) { // a frame, not a tick
			w.asleep.Add(int64(session.FenceAfter))
			time.Sleep(3 * writeTime)
		}
	}})
	c := w.open("gen-2.5", studio)
	stop.Store(true)
	c.painted(colorOf(""))
	c.ends("session_lost", websocket.StatusInternalError, "The session was lost. Connect again.")
}

// glut is an engine whose frames are larger than a connection's buffers.
type glut struct{}

func (glut) Open(context.Context, *catalog.Model) (engine.LiveEditor, error) { return &glutton{}, nil }

type glutton struct{ canvas }

// Edit returns noise, which needs more than a byte per pixel as JPEG.
func (*glutton) Edit(context.Context, *engine.Picture) (*engine.Picture, error) {
	noise := filled(image.Rect(0, 0, 4500, 4500), red)
	_, _ = rand.NewChaCha8([32]byte{}).Read(noise.Y)
	return noise, nil
}

// The client of a lost session is disconnected before others take its slot, even if it does not read.
func TestLostSessionDisconnectsItsClient(t *testing.T) {
	w := newWorld(t, setup{engine: glut{}, times: realtime.Times{Write: time.Hour, Close: 50 * time.Millisecond}})
	c := w.open("gen-2.5", studio)
	c.show(plain(32, 16, red)) // does not read the responses
	w.asleep.Add(int64(session.FenceAfter))
	eventually(
		t, "the connection has ended", func() bool { return strings.Contains(w.log.String(), "reason=session_lost") },
	)
}

func TestBusyEngineDoesNotHoldSlot(t *testing.T) {
	begun, release := make(chan struct{}), make(chan struct{})
	w := newWorld(t, setup{engine: &slow{begun: begun, release: release}})
	defer close(release)
	c := w.open("gen-2.5", studio)
	c.say(`{"type":"prompt","prompt":"x"}`)
	patience.Receive(t, "begun", begun)
	w.active("studio", 1)
	c.drop()
	w.active("studio", 0)
}

// slow is an engine that is slow to prepare a prompt.
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

// The usage contains part of an open session and all of an ended session.
func TestUsageIsRecorded(t *testing.T) {
	w := newWorld(t, setup{times: realtime.Times{Usage: 300 * time.Millisecond}})
	began := time.Now()
	today := usage.DayOf(began)
	total := func(model string) usage.Counts {
		t.Helper()
		// Midnight may pass.
		totals, err := w.usage.Totals(t.Context(), "studio", today, usage.DayOf(time.Now()), usage.All)
		if err != nil {
			t.Fatal(err)
		}
		var sum usage.Counts
		for _, t := range totals {
			if t.Model == model {
				sum.Add(t.Counts)
			}
		}
		return sum
	}
	first, second := w.open("gen-latest", studio), w.open("gen-2.5", w.mint(studio, credential.Scope{}, time.Minute))
	other := w.open("gen-2.1", studio)
	eventually(t, "the usage of open sessions is recorded", func() bool {
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
