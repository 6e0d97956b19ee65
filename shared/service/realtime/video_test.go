package realtime_test

import (
	"context"
	"crypto/rand"
	"image"
	"image/color"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cutroom/shared/platform/vp8"
	"cutroom/shared/platform/vp8/vp8test"
	"cutroom/shared/service/realtime"
	"cutroom/shared/service/realtime/livekit"
	"cutroom/shared/service/realtime/livekit/livekittest"
	"cutroom/shared/service/realtime/room"
	"cutroom/shared/testkit/await"
)

func liveVideo(t *testing.T, network func(net.PacketConn) net.PacketConn, logger *slog.Logger) *realtime.WebRTC {
	t.Helper()
	found, err := vp8test.Find()
	if err != nil {
		t.Fatal(err)
	}
	ports, err := room.Listen(room.PortsConfig{Address: "127.0.0.1:0", Wrap: network, Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ports.Close() })
	return &realtime.WebRTC{Codecs: found, Rooms: room.NewServer(room.ServerConfig{
		Ports: ports, Secret: []byte(rand.Text()), Now: time.Now, NewID: rand.Text, Logger: logger,
	})}
}

// camera returns frames of a single color. Their size may change.
type camera struct {
	t    *testing.T
	size atomic.Pointer[image.Point]
}

func newCamera(t *testing.T, width, height int) *camera {
	c := &camera{t: t}
	c.turn(width, height)
	return c
}

func (c *camera) turn(width, height int) { c.size.Store(&image.Point{X: width, Y: height}) }

// films returns the camera's next frame, which is always a key frame.
func (c *camera) films(bool) []byte { return keyFrame(c.t, *c.size.Load()) }

var keyFrames sync.Map

func keyFrame(t *testing.T, size image.Point) []byte {
	if frame, ok := keyFrames.Load(size); ok {
		return frame.([]byte)
	}
	found, err := vp8test.Find()
	if err != nil {
		t.Error(err)
		return nil
	}
	codec, err := found.Open(context.Background())
	if err != nil {
		t.Error(err)
		return nil
	}
	defer codec.Close()
	picture := filled(image.Rectangle{Max: size}, color.RGBA{200, 30, 30, 255})
	encoded, err := codec.Encode(context.Background(), &picture.YCbCr, vp8.Encoding{Bitrate: 500, Key: true})
	if err != nil {
		t.Error(err)
	}
	keyFrames.Store(size, encoded.Data)
	return encoded.Data
}

type videoClient struct {
	*client
	*livekittest.Client
	watched string
}

// goLive joins the session's room, with a camera if films is not nil.
func (w *world) goLive(c *client, films *camera) *videoClient {
	w.t.Helper()
	c.say(`{"type":"livekit_join","passthrough":true}`)
	m := c.next()
	for m.Type == "queue_position" || m.Type == "generation_started" {
		m = c.next()
	}
	if m.Type != "livekit_room_info" || m.Token == "" || m.Room == "" {
		w.t.Fatalf("no room: %+v", m)
	}
	config := livekittest.Config{URL: m.URL, Token: m.Token, Version: livekit.Version1}
	if films != nil {
		config.Camera = films.films
	}
	return &videoClient{c, livekittest.Join(w.t, config), m.Room}
}

// shows waits until the server returns frames of the given size.
func (c *videoClient) shows(width, height int) {
	c.t.Helper()
	n := 0
	for limit := time.After(await.Max); ; {
		select {
		case frame := <-c.Seen:
			n++
			if header, _ := vp8.Inspect(frame); header.Width == width && header.Height == height {
				return
			}
		case <-limit:
			c.t.Fatalf("no picture of %dx%d among %d returned frames", width, height, n)
		}
	}
}

func helpers(t *testing.T) map[int]bool {
	t.Helper()
	all := map[int]bool{}
	tasks, _ := filepath.Glob("/proc/self/task/*/children")
	for _, task := range tasks {
		pids, _ := os.ReadFile(task) // the thread may have exited
		for _, pid := range strings.Fields(string(pids)) {
			number, err := strconv.Atoi(pid)
			if err != nil {
				t.Fatal(err)
			}
			all[number] = true
		}
	}
	return all
}
