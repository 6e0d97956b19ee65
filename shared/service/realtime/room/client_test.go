package room

import (
	"crypto/rand"
	"encoding/binary"
	"log/slog"
	"net"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pion/webrtc/v4"

	"cutroom/shared/service/realtime/livekit"
	"cutroom/shared/service/realtime/livekit/livekittest"
	"cutroom/shared/testkit/await"
)

type world struct {
	*Server
	*testing.T
	http *httptest.Server
	// reach, if not nil, changes how new clients connect to the server.
	reach func(*webrtc.SettingEngine, *webrtc.Configuration)
	// later is how far the tokens' clock is ahead, in nanoseconds.
	later atomic.Int64
}

func newWorld(t *testing.T, wrap func(net.PacketConn) net.PacketConn) *world {
	t.Helper()
	return newWorldAt(t, PortsConfig{Address: "127.0.0.1:0", Wrap: wrap}, Relays{})
}

func newWorldAt(t *testing.T, at PortsConfig, relays Relays) *world {
	t.Helper()
	logger := slog.New(slog.NewTextHandler(t.Output(), nil))
	at.Logger = logger
	ports, err := Listen(at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ports.Close() })
	w := &world{T: t}
	w.Server = NewServer(ServerConfig{
		Ports: ports, Secret: []byte("a secret of this test"), NewID: rand.Text, Relays: relays, Logger: logger,
		Now: func() time.Time { return time.Now().Add(time.Duration(w.later.Load())) },
	})
	w.http = httptest.NewServer(w.Server)
	t.Cleanup(w.http.Close)
	return w
}

func always(bool) bool { return true }

// mirror opens a room that sends its client's packets back and counts the audio packets.
func (w *world) mirror() (r *Room, heard *atomic.Int64) {
	w.Helper()
	heard = &atomic.Int64{}
	r, err := w.Open(Config{Account: "acme", Session: "session_1", Heard: func() { heard.Add(1) }, MayJoin: always})
	if err != nil {
		w.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for frame := range r.Frames() {
			if r.KeyWanted() && !frame.Key {
				r.AskKey()
			}
			r.Send(frame.Data, frame)
		}
	}()
	w.Cleanup(func() {
		r.Close(livekit.ReasonRoomDeleted)
		await.Receive(w, "done", done)
	})
	return r, heard
}

func (w *world) token(r *Room, publish bool) string {
	w.Helper()
	token, err := w.Token(r, publish)
	if err != nil {
		w.Fatal(err)
	}
	return token
}

// as returns the configuration of a client that will join the room.
func (w *world) as(r *Room, version livekit.Version, publish bool, networks ...webrtc.NetworkType) livekittest.Config {
	w.Helper()
	c := livekittest.Config{
		URL: w.http.URL + Path + r.Name(), Token: w.token(r, publish), Version: version, Networks: networks, Reach: w.reach,
	}
	if publish {
		c.Camera = numbered()
	}
	return c
}

func (w *world) expired(r *Room) livekittest.Config {
	w.Helper()
	later := w.later.Swap(-int64(2 * tokenTime))
	defer w.later.Store(later)
	return w.as(r, livekit.Version1, false)
}

// join joins a room, over UDP if no networks are given.
func (w *world) join(
	r *Room, version livekit.Version, publish bool, networks ...webrtc.NetworkType,
) *livekittest.Client {
	w.Helper()
	return livekittest.Join(w.T, w.as(r, version, publish, networks...))
}

// numbered returns a camera. A frame takes five packets and contains a frame tag, the picture size
// if it is a key frame, and the frame's number.
func numbered() func(key bool) []byte {
	number := uint32(0)
	return func(key bool) []byte {
		frame := make([]byte, 5000)
		frame[0] = 1
		if key {
			copy(frame, []byte{0, 0, 0, 0x9d, 1, 0x2a, 64, 0, 64, 0})
		}
		number++
		binary.BigEndian.PutUint32(frame[10:], number)
		return frame
	}
}
