package realtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/credential"
	"cutroom/shared/engine"
	"cutroom/shared/engine/preview/frame"
	"cutroom/shared/service/realtime"
	"cutroom/shared/service/realtime/livekit"
	"cutroom/shared/service/realtime/livekit/livekittest"
	"cutroom/shared/testkit/await"
	"cutroom/shared/testkit/lossytest"
)

func TestLiveVideoFollowsTheCamera(t *testing.T) {
	for name, of := range map[string]struct {
		engine engine.LiveEngine
		sizes  [][4]int // width and height of the camera, then of the returned video
	}{
		"an engine that keeps the size": {nil, [][4]int{
			{640, 360, 640, 360}, {320, 180, 320, 180}, {180, 320, 180, 320}, {322, 182, 322, 182}, {640, 360, 640, 360},
		}},
		"an engine with a size of its own": {
			frame.New(time.Now, func() uint32 { return 7 }), [][4]int{
				{640, 360, 640, 360}, {180, 320, 360, 640}, {320, 180, 640, 360}, {320, 240, 480, 360},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, setup{webrtc: true, engine: of.engine})
			films := newCamera(t, of.sizes[0][0], of.sizes[0][1])
			c := w.goLive(w.open("gen-2.5", studio), films)
			for _, size := range of.sizes {
				films.turn(size[0], size[1])
				c.shows(size[2], size[3])
			}
		})
	}
}

func TestSessionEndIsAnnouncedInRoom(t *testing.T) {
	for name, of := range map[string]struct {
		setup  setup
		key    func(t *testing.T, w *world) string
		end    func(t *testing.T, w *world, c *videoClient)
		reason string
		code   websocket.StatusCode
		text   string
		left   livekit.DisconnectReason
	}{
		"a longest duration": {
			key: func(_ *testing.T, w *world) string {
				return w.mint(studio, credential.Scope{MaxSession: 10 * time.Second}, time.Minute)
			},
			reason: "max_session_duration", code: websocket.StatusNormalClosure, text: "Maximum session duration reached.",
			left: livekit.ReasonRoomDeleted,
		},
		"a key that is revoked": {
			setup:  setup{times: realtime.Times{Revocation: 50 * time.Millisecond}},
			key:    func(_ *testing.T, w *world) string { return w.newKey("ck_parent_key") },
			end:    func(_ *testing.T, w *world, _ *videoClient) { w.revoke("ck_parent_key") },
			reason: "key_revoked", code: websocket.StatusPolicyViolation, text: "Invalid API key",
			left: livekit.ReasonRoomDeleted,
		},
		"a stop of the server": {
			end:    func(_ *testing.T, w *world, _ *videoClient) { go w.stop() },
			reason: "server_stopping", code: websocket.StatusGoingAway, text: "The server is stopping.",
			left: livekit.ReasonServerShutdown,
		},
		"a lost control channel": {
			end:  func(_ *testing.T, _ *world, c *videoClient) { c.drop() },
			left: livekit.ReasonRoomDeleted,
		},
		"an engine that fails": {
			setup:  setup{engine: &failing{}},
			end:    func(_ *testing.T, _ *world, c *videoClient) { c.say(`{"type":"prompt","prompt":"fail"}`) },
			reason: "internal_error", code: websocket.StatusInternalError, text: "Internal error",
			left: livekit.ReasonRoomDeleted,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			of.setup.webrtc = true
			w := newWorld(t, of.setup)
			key := studio
			if of.key != nil {
				key = of.key(t, w)
			}
			c := w.goLive(w.open("gen-2.5", key), newCamera(t, 160, 90))
			c.shows(160, 90)
			viewer := w.watches(c.watched, studio)
			viewer.Sees(1)
			if of.end != nil {
				of.end(t, w, c)
			}
			for _, one := range []*livekittest.Client{c.Client, viewer} {
				if leave := one.Left(); leave.Reason != of.left || leave.Action != livekit.ActionDisconnect {
					t.Errorf("the room ends with %v", leave)
				}
			}
			w.active("studio", 0)
			if of.reason == "" {
				// The client reconnects with its camera.
				w.goLive(w.open("gen-2.5", studio), newCamera(t, 160, 90)).shows(160, 90)
				return
			}
			m := c.next()
			for ; m.Type != "generation_ended"; m = c.next() {
				if m.closed != nil {
					t.Fatalf("closed without generation_ended: %v", m.closed)
				}
			}
			if m.Reason != of.reason {
				t.Errorf("the session ends with %q", m.Reason)
			}
			c.ends("", of.code, of.text)
		})
	}
}

type failing struct{ painter }

func (f *failing) Open(context.Context, *catalog.Model) (engine.LiveEditor, error) {
	return &failingEditor{canvas: canvas{painter: &f.painter}}, nil
}

type failingEditor struct {
	canvas
	fails atomic.Bool
}

func (e *failingEditor) SetPrompt(ctx context.Context, prompt string) (engine.Outcome, error) {
	e.fails.Store(prompt == "fail")
	return e.canvas.SetPrompt(ctx, prompt)
}

func (e *failingEditor) Edit(ctx context.Context, picture *engine.Picture) (*engine.Picture, error) {
	if e.fails.Load() {
		return nil, fmt.Errorf("an engine that fails")
	}
	return e.canvas.Edit(ctx, picture)
}

func (w *world) asksToWatch(name, key string, header ...string) (status int, answer string) {
	w.t.Helper()
	request, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, "http://"+w.address+"/watch-stream/"+name, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	request.Header.Set("X-Api-Key", key)
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		w.t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return response.StatusCode, string(content)
}

func (w *world) watches(name, key string) *livekittest.Client {
	w.t.Helper()
	status, answer := w.asksToWatch(name, key)
	var room message
	if err := json.Unmarshal([]byte(answer), &room); err != nil || status != http.StatusOK {
		w.t.Fatalf("%d: %s", status, answer)
	}
	return livekittest.Join(w.t, livekittest.Config{URL: room.URL, Token: room.Token, Version: livekit.Version1})
}

// A viewer can watch until the session ends.
func TestOnlyOwnAccountMayWatch(t *testing.T) {
	const page = "https://app.example.com"
	w := newWorld(t, setup{webrtc: true, origins: []string{page}})
	c := w.goLive(w.open("gen-2.5", studio), newCamera(t, 160, 90))
	c.shows(160, 90)
	token := func(scope credential.Scope) string { return w.mint(studio, scope, time.Hour) }
	for _, of := range []struct {
		name, room, key string
		header          []string
		status          int
	}{
		{"the session's key", c.watched, studio, nil, http.StatusOK},
		{"a token", c.watched, token(credential.Scope{}), nil, http.StatusOK},
		{"a page", c.watched, studio, []string{"Origin", page}, http.StatusOK},
		{"no key", c.watched, "", nil, http.StatusUnauthorized},
		{"a wrong key", c.watched, "ck_wrong_key_1", nil, http.StatusUnauthorized},
		{"another account", c.watched, rival, nil, http.StatusNotFound},
		{"a token of another model", c.watched, token(credential.Scope{Models: []string{"gen-2.1"}}), nil, http.StatusForbidden},
		{"a key for other routes", c.watched, w.newKey("ck_other_routes", func(k *credential.Key) {
			k.Limits.Routes = []credential.RouteGroup{credential.JobRoutes}
		}), nil, http.StatusForbidden},
		{"a key for another model", c.watched, w.newKey("ck_other_model", func(k *credential.Key) {
			k.Limits.Models = []string{"gen-2.1"}
		}), nil, http.StatusForbidden},
		{"a page that is not allowed", c.watched, studio, []string{"Origin", "https://evil.example.com"}, http.StatusForbidden},
		{"an unknown room", "room_1", studio, nil, http.StatusNotFound},
		{"no room", "", studio, nil, http.StatusNotFound},
	} {
		if status, answer := w.asksToWatch(of.room, of.key, of.header...); status != of.status {
			t.Errorf("%s: %d %s", of.name, status, answer)
		}
	}
	viewer := w.watches(c.watched, studio)
	viewer.Sees(3)
	other := w.watches(c.watched, studio)
	other.Close() // leaves without notice
	viewer.Sees(3)
	c.drop()
	viewer.Left()
	w.active("studio", 0)
	if status, answer := w.asksToWatch(c.watched, studio); status != http.StatusNotFound {
		t.Errorf("after the end: %d %s", status, answer)
	}
	again := livekittest.New(t, livekittest.Config{URL: viewer.URL, Token: viewer.Token, Version: livekit.Version1})
	if err := again.TryDial(""); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("a token outlives its room: %v", err)
	}
}

func TestMediaKeepsSessionAlive(t *testing.T) {
	t.Parallel()
	network := &atomic.Pointer[lossytest.Conn]{}
	w := newWorld(t, setup{webrtc: true, times: realtime.Times{Idle: 10 * time.Second}, network: func(c net.PacketConn) net.PacketConn {
		network.Store(lossytest.NewConn(c, 1))
		return network.Load()
	}})
	films := w.goLive(w.open("gen-2.5", studio), newCamera(t, 160, 90))
	films.shows(160, 90)
	// The client joins but never sends any video.
	w.goLive(w.open("gen-2.5", studio), nil).ends("idle", websocket.StatusNormalClosure, "The session was idle.")
	for len(films.Seen) > 0 {
		await.Receive(t, "films.Seen", films.Seen)
	}
	films.Sees(5)
	network.Load().Set(lossytest.Faults{Block: true}, lossytest.Faults{Block: true})
	for m := films.next(); m.Type != "generation_ended"; m = films.next() {
		if m.Type != "generation_started" {
			t.Fatalf("got %+v", m)
		}
	}
	films.ends("", websocket.StatusNormalClosure, "The session was idle.")
	w.active("studio", 0)
}

// Malformed frames, even megabytes per second, do not affect other sessions.
func TestSessionSurvivesBrokenFrames(t *testing.T) {
	w := newWorld(t, setup{webrtc: true})
	other := w.goLive(w.open("gen-2.5", rival), newCamera(t, 160, 90))
	other.shows(160, 90)
	c := w.goLive(w.open("gen-2.5", studio), newCamera(t, 160, 90))
	c.shows(160, 90)
	films := &camera{t: t}
	films.turn(320, 180)
	broken := make([]byte, 300_000)
	_, _ = rand.NewChaCha8([32]byte{}).Read(broken)
	copy(broken, keyFrame(t, *films.size.Load())[:10])
	var good atomic.Bool
	c.Unpublish()
	c.Camera = func(bool) []byte {
		if good.Load() {
			return films.films(true)
		}
		return broken
	}
	c.Publish()
	for len(other.Seen) > 0 {
		await.Receive(t, "other.Seen", other.Seen)
	}
	other.Sees(50)
	good.Store(true)
	c.shows(320, 180)
}

// A client whose token has expired gets another one for the same room. The new token replaces the old one.
func TestRepeatedJoinGetsNewToken(t *testing.T) {
	w := newWorld(t, setup{webrtc: true})
	c := w.open("gen-2.5", studio)
	first := w.goLive(c, newCamera(t, 160, 90))
	first.shows(160, 90)
	second := w.goLive(c, newCamera(t, 320, 180))
	if second.watched != first.watched {
		t.Errorf("the rooms are %s and %s", first.watched, second.watched)
	}
	if leave := first.Left(); leave.Reason != livekit.ReasonDuplicateIdentity {
		t.Errorf("the first client got %v", leave)
	}
	second.shows(320, 180)
	// The socket counts as a connection of the account, so strangers cannot replace it.
	await.Until(t, "the first client's socket is logged with its account", func() bool {
		return regexp.MustCompile(`account=studio method=GET route=/v1/rooms/`).MatchString(w.log.String())
	})
}

// An error's text decides whether common clients retry five times or never.
func TestClientsRetryOnlyTemporaryErrors(t *testing.T) {
	givesUp := func(text string) bool {
		for _, words := range []string{
			"permission denied", "not allowed", "invalid session", "401", "invalid api key", "unauthorized",
		} {
			if strings.Contains(strings.ToLower(text), words) {
				return true
			}
		}
		return false
	}
	down := error(errors.New("the store is down"))
	unavailable := &atomic.Pointer[error]{}
	w := newWorld(t, setup{limit: 1, failing: unavailable, origins: []string{"https://app.example.com"}})
	w.open("gen-2.5", rival)
	for _, of := range []struct {
		name, model, key, origin string
		store                    *error
		tries                    int
	}{
		{"a wrong key", "gen-2.5", "ck_wrong_key_1", "", nil, 1},
		{"another model", "gen-9", studio, "", nil, 1},
		{"another page", "gen-2.5", studio, "https://evil.example.com", nil, 1},
		{"no transport", "gen-2.5", studio, "", nil, 1},
		{"a limit", "gen-2.5", rival, "", nil, 6},
		{"a store that is down", "gen-2.5", studio, "", &down, 6},
	} {
		t.Run(of.name, func(t *testing.T) {
			unavailable.Store(of.store)
			tries := 0
			for more := true; more && tries < 6; tries++ {
				c := w.dial(of.model, of.key, "Origin", of.origin)
				m := c.next()
				if m.Type == "session_started" {
					c.say(`{"type":"livekit_join"}`)
					m = c.next()
				}
				if m.Type != "error" {
					t.Fatalf("got %+v", m)
				}
				more = !givesUp(m.Error)
				c.drop()
			}
			if tries != of.tries {
				t.Errorf("clients try %d times, want %d", tries, of.tries)
			}
		})
	}
}

// Of three rooms, an account may have two.
func TestOpenRoomsAreLimited(t *testing.T) {
	w := newWorld(t, setup{webrtc: true, maxRooms: 3, limit: 10})
	const join, full = `{"type":"livekit_join"}`, "The server has no memory for another room. Try again later."
	first := w.goLive(w.open("gen-2.5", studio), nil)
	w.goLive(w.open("gen-2.5", studio), nil)
	third := w.open("gen-2.5", studio)
	third.say(join)
	if m := third.next(); m.Error != full {
		t.Errorf("a third room of an account: got %+v", m)
	}
	w.goLive(w.open("gen-2.5", rival), nil)
	late := w.open("gen-2.5", rival)
	late.say(join)
	if m := late.next(); m.Error != full {
		t.Errorf("a fourth room: got %+v", m)
	}
	late.painted(colorOf("")) // the session remains open
	first.leave()
	await.Until(t, "the room of an ended session becomes free", func() bool {
		third.say(join)
		m := third.next()
		return m.Type == "livekit_room_info"
	})
}

func TestLiveVideoLeavesNothingBehind(t *testing.T) {
	w := newWorld(t, setup{webrtc: true, limit: 100, times: realtime.Times{Close: 300 * time.Millisecond}})
	http.DefaultClient.CloseIdleConnections()
	one := func(how int) {
		c := w.open("gen-2.5", studio)
		var films *camera
		if how%4 < 2 {
			films = newCamera(t, 160, 90)
		}
		if how%10 == 9 { // requests a room but does not join it
			c.say(`{"type":"livekit_join"}`)
			c.drop()
			return
		}
		live := w.goLive(c, films)
		if films != nil {
			live.Sees(1)
		}
		switch how % 5 {
		case 0: // everything closes at once, without notice
			live.Close()
			c.drop()
		case 1: // the session closes first
			c.leave()
			live.Left()
			live.Close()
		case 2: // the client leaves the room first
			live.Say(&livekit.SignalRequest{Leave: &livekit.LeaveRequest{}})
			live.Left()
			live.Close()
			c.drop()
		case 3: // the signaling connection is lost for good
			live.Drop()
			c.drop()
			live.Close()
		case 4: // the client leaves without notice
			live.Own.Close()
			c.drop()
			live.Close()
		}
	}
	for how := range 10 { // makes the one-time allocations
		one(how)
	}
	w.active("studio", 0)
	await.Until(t, "the helper processes have ended", func() bool { return len(helpers(t)) == 0 })
	goroutines, memory := level()
	descriptors := openFiles(t)
	var clients sync.WaitGroup
	for worker := range 4 {
		clients.Go(func() {
			for how := range 25 {
				one(how + 25*worker)
			}
		})
	}
	clients.Wait()
	w.active("studio", 0)
	await.Until(t, "the helper processes have ended", func() bool { return len(helpers(t)) == 0 })
	await.Until(t, "the goroutines have ended", func() bool { now, _ := level(); return now <= goroutines+2 })
	// The database opens some connections only when several sessions need them. If each of the 100
	// sessions left a descriptor open, there would be far more.
	await.Until(t, "the descriptors are closed", func() bool { return openFiles(t) <= descriptors+20 })
	await.Until(t, "the memory is given back", func() bool { _, now := level(); return now <= memory+8<<20 })
}

func openFiles(t *testing.T) int {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(open)
}
