package room

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"log/slog"
	"net"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/pion/webrtc/v4"
	"github.com/pion/webrtc/v4/pkg/media"
	"google.golang.org/protobuf/proto"

	"cutroom/shared/service/realtime/livekit"
)

// testTime bounds what a test waits for.
const testTime = 60 * time.Second

// world is a server of rooms with ports of its own.
type world struct {
	*Server
	*testing.T
	http *httptest.Server
	// reach changes how clients from now on find a way to the server; nil changes nothing.
	reach func(*webrtc.SettingEngine, *webrtc.Configuration)
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
	w := &world{Server: NewServer(ServerConfig{
		Ports: ports, Secret: []byte("a secret of this test"), Now: time.Now, NewID: rand.Text, Relays: relays, Logger: logger,
	}), T: t}
	w.http = httptest.NewServer(w.Server)
	t.Cleanup(w.http.Close)
	return w
}

// mirror opens a room that sends back what its client sends, and counts what it heard.
func (w *world) mirror() (r *Room, heard *atomic.Int64) {
	w.Helper()
	heard = &atomic.Int64{}
	r, err := w.Open(Config{Account: "acme", Session: "session_1", Heard: func() { heard.Add(1) }})
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
		r.Close(livekit.DisconnectReason_ROOM_DELETED)
		<-done
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

// client speaks LiveKit's client protocol over a connection of its own.
type client struct {
	*testing.T
	world   *world
	room    *Room
	token   string
	version livekit.Version
	socket  *websocket.Conn
	// own offers, other answers; the same in version 1.
	own, other *webrtc.PeerConnection
	camera     *webrtc.TrackLocalStaticSample
	microphone *webrtc.TrackLocalStaticSample

	welcome *livekit.JoinResponse
	joined  chan *livekit.JoinResponse
	// leaves are those of the server; seen are the numbers of the frames that came back.
	leaves  chan *livekit.LeaveRequest
	seen    chan uint32
	sounds  chan []byte
	updates chan *livekit.ParticipantUpdate
	resumed chan struct{}
	// answered has an element for each answer that was taken.
	answered chan struct{}
	sends    atomic.Uint32
	key      atomic.Bool
}

// join returns a client that has joined, with addresses of the networks, UDP if there are
// none.
func (w *world) join(r *Room, version livekit.Version, publish bool, networks ...webrtc.NetworkType) *client {
	w.Helper()
	c := &client{
		T: w.T, world: w, room: r, token: w.token(r, publish), version: version, joined: make(chan *livekit.JoinResponse, 1),
		leaves: make(chan *livekit.LeaveRequest, 1), seen: make(chan uint32, 10_000), sounds: make(chan []byte, 1000),
		resumed: make(chan struct{}, 1), answered: make(chan struct{}, 10), updates: make(chan *livekit.ParticipantUpdate, 10),
	}
	if len(networks) == 0 {
		networks = []webrtc.NetworkType{webrtc.NetworkTypeUDP4}
	}
	c.key.Store(true)
	c.own = c.peer(networks)
	c.other = c.own
	if version == livekit.Version0 {
		c.other = c.peer(networks)
	}
	query := "access_token=" + c.token
	if version == livekit.Version1 {
		for _, kind := range []webrtc.RTPCodecType{webrtc.RTPCodecTypeAudio, webrtc.RTPCodecTypeVideo} {
			_, err := c.own.AddTransceiverFromKind(kind, webrtc.RTPTransceiverInit{
				Direction: webrtc.RTPTransceiverDirectionRecvonly,
			})
			c.must(err)
		}
		_, err := c.own.CreateDataChannel("_reliable", nil)
		c.must(err)
		query += "&join_request=" + wrapped(c.T, &livekit.JoinRequest{PublisherOffer: c.offer(1)})
	}
	c.dial(query)
	c.welcome = <-c.joined
	if version == livekit.Version1 {
		<-c.answered
	}
	if publish {
		c.publish()
	}
	return c
}

func wrapped(t *testing.T, join *livekit.JoinRequest) string {
	t.Helper()
	content, err := proto.Marshal(join)
	if err != nil {
		t.Fatal(err)
	}
	content, err = proto.Marshal(&livekit.WrappedJoinRequest{JoinRequest: content})
	if err != nil {
		t.Fatal(err)
	}
	return base64.URLEncoding.EncodeToString(content)
}

func (c *client) must(err error) {
	c.Helper()
	if err != nil {
		c.Error(err)
	}
}

func (c *client) peer(networks []webrtc.NetworkType) *webrtc.PeerConnection {
	c.Helper()
	var settings webrtc.SettingEngine
	settings.SetIncludeLoopbackCandidate(true)
	settings.SetNetworkTypes(networks)
	settings.SetIPFilter(func(ip net.IP) bool { return ip.IsLoopback() })
	var way webrtc.Configuration
	if c.world.reach != nil {
		c.world.reach(&settings, &way)
	}
	pc, err := webrtc.NewAPI(webrtc.WithSettingEngine(settings)).NewPeerConnection(way)
	c.must(err)
	c.Cleanup(func() { pc.Close() })
	pc.OnTrack(func(track *webrtc.TrackRemote, _ *webrtc.RTPReceiver) {
		frames := newAssembler()
		for {
			packet, _, err := track.ReadRTP()
			if err != nil {
				return
			}
			if track.Kind() == webrtc.RTPCodecTypeAudio {
				c.sounds <- packet.Payload
				continue
			}
			for _, frame := range frames.push(packet, time.Now()) {
				c.seen <- binary.BigEndian.Uint32(frame.data[10:])
			}
		}
	})
	return pc
}

// offer returns an offer with all addresses.
func (c *client) offer(id uint32) *livekit.SessionDescription {
	c.Helper()
	gathered := webrtc.GatheringCompletePromise(c.own)
	offer, err := c.own.CreateOffer(nil)
	c.must(err)
	c.must(c.own.SetLocalDescription(offer))
	<-gathered
	return &livekit.SessionDescription{Type: "offer", Sdp: c.own.LocalDescription().SDP, Id: id}
}

func (c *client) dial(query string) {
	c.Helper()
	path := "/rtc"
	if c.version == livekit.Version1 {
		path += "/v1"
	}
	ctx, cancel := context.WithTimeout(c.Context(), testTime)
	defer cancel()
	socket, _, err := websocket.Dial(ctx, c.world.http.URL+Path+c.room.Name()+path+"?"+query, nil)
	if err != nil {
		c.Fatal(err)
	}
	socket.SetReadLimit(1 << 20)
	c.socket = socket
	c.Cleanup(func() { socket.CloseNow() })
	go c.listen(socket)
}

func (c *client) send(m *livekit.SignalRequest) {
	content, err := proto.Marshal(m)
	c.must(err)
	_ = c.socket.Write(c.Context(), websocket.MessageBinary, content)
}

func (c *client) listen(socket *websocket.Conn) {
	for {
		_, content, err := socket.Read(c.Context())
		if err != nil {
			return
		}
		var m livekit.SignalResponse
		c.must(proto.Unmarshal(content, &m))
		switch m := m.GetMessage().(type) {
		case *livekit.SignalResponse_Join:
			c.joined <- m.Join
		case *livekit.SignalResponse_Reconnect:
			c.resumed <- struct{}{}
		case *livekit.SignalResponse_Answer:
			c.must(c.own.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeAnswer, SDP: m.Answer.GetSdp()}))
			c.answered <- struct{}{}
		case *livekit.SignalResponse_Offer:
			c.must(c.other.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeOffer, SDP: m.Offer.GetSdp()}))
			answer, err := c.other.CreateAnswer(nil)
			c.must(err)
			c.must(c.other.SetLocalDescription(answer))
			c.send(&livekit.SignalRequest{Message: &livekit.SignalRequest_Answer{
				Answer: &livekit.SessionDescription{Type: "answer", Sdp: answer.SDP},
			}})
		case *livekit.SignalResponse_Update:
			c.updates <- m.Update
		case *livekit.SignalResponse_Leave:
			c.leaves <- m.Leave
		}
	}
}

// publish sends a camera, 25 frames a second, and sound.
func (c *client) publish() {
	c.Helper()
	var err error
	c.camera, err = webrtc.NewTrackLocalStaticSample(
		webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypeVP8, ClockRate: videoClock}, "camera", "mine")
	c.must(err)
	c.microphone, err = webrtc.NewTrackLocalStaticSample(
		webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypeOpus, ClockRate: audioClock, Channels: 2}, "microphone", "mine")
	c.must(err)
	for _, track := range []webrtc.TrackLocal{c.camera, c.microphone} {
		transceiver, err := c.own.AddTransceiverFromTrack(track, webrtc.RTPTransceiverInit{
			Direction: webrtc.RTPTransceiverDirectionSendonly,
		})
		c.must(err)
		go func() { // asks for key frames
			buffer := make([]byte, 1500)
			for {
				if _, _, err := transceiver.Sender().Read(buffer); err != nil {
					return
				}
				if track == c.camera {
					c.key.Store(true)
				}
			}
		}()
	}
	c.send(&livekit.SignalRequest{Message: &livekit.SignalRequest_AddTrack{AddTrack: &livekit.AddTrackRequest{
		Cid: "camera", Type: livekit.TrackType_VIDEO, Width: 640, Height: 360,
	}}})
	c.send(&livekit.SignalRequest{Message: &livekit.SignalRequest_Offer{Offer: c.offer(2)}})
	go func() {
		ticker := time.NewTicker(40 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-c.Context().Done():
				return
			case <-ticker.C:
			}
			// A frame of five packets: its tag, the size of a key frame, and its number.
			frame := make([]byte, 5000)
			frame[0] = 1
			if c.key.Swap(false) {
				copy(frame, []byte{0, 0, 0, 0x9d, 1, 0x2a, 64, 0, 64, 0})
			}
			binary.BigEndian.PutUint32(frame[10:], c.sends.Add(1))
			_ = c.camera.WriteSample(media.Sample{Data: frame, Duration: 40 * time.Millisecond})
			_ = c.microphone.WriteSample(media.Sample{Data: []byte("sound"), Duration: 20 * time.Millisecond})
		}
	}()
}

// sees waits until so many frames have come back.
func (c *client) sees(frames int) {
	c.Helper()
	timeout := time.After(testTime)
	for n := range frames {
		select {
		case <-c.seen:
		case <-timeout:
			c.Fatalf("%d frames came back, want %d", n, frames)
		}
	}
}

// left waits until the server says that the client is to leave.
func (c *client) left() *livekit.LeaveRequest {
	c.Helper()
	select {
	case leave := <-c.leaves:
		return leave
	case <-time.After(testTime):
		c.Fatal("the server does not say that it is over")
		return nil
	}
}
