// Package livekittest is a test client for rooms that supports both versions of LiveKit's protocol.
package livekittest

import (
	"context"
	"encoding/base64"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/pion/interceptor"
	"github.com/pion/rtcp"
	"github.com/pion/rtp/codecs"
	"github.com/pion/webrtc/v4"
	"github.com/pion/webrtc/v4/pkg/media/samplebuilder"

	"cutroom/shared/service/realtime/livekit"
	"cutroom/shared/testkit/await"
)

// lostTime is how long a client waits for a missing packet of a frame.
const lostTime = time.Second / 2

type Config struct {
	URL, Token string
	Version    livekit.Version
	// Networks lists the networks on which the client gathers addresses. The default is UDP over IPv4.
	Networks []webrtc.NetworkType
	// Camera returns the next frame, which is a key frame if key is set. A client without a camera only watches.
	Camera func(key bool) []byte
	// Reach configures how the client connects. Change modifies its offer. Both may be nil.
	Reach  func(*webrtc.SettingEngine, *webrtc.Configuration)
	Change func(offer string) string
}

// Client is a participant in a room. Its channels drop elements when they are full.
type Client struct {
	testing.TB
	Config

	// The client sends the offers for Own, and the server sends the offers for Other. In version 1 they are the same
	// connection.
	Own, Other        *webrtc.PeerConnection
	Joined            *livekit.JoinResponse
	Seen, Heard       chan []byte
	Leaves            chan *livekit.LeaveRequest
	Updates           chan *livekit.ParticipantUpdate
	Resumed, Answered chan struct{}
	Sent              atomic.Int64
	// Packets sends RTP packets unchanged. It is nil until the client publishes.
	Packets atomic.Pointer[interceptor.RTPWriter]

	joined    chan *livekit.JoinResponse
	socket    *websocket.Conn
	stop      context.CancelFunc
	life      context.Context
	key       atomic.Bool
	unpublish func()
	filming   sync.WaitGroup
}

// Join joins a room, and publishes video and sound if there is a camera. The client is closed when the test ends.
func Join(t testing.TB, c Config) *Client {
	t.Helper()
	one := New(t, c)
	one.Open()
	if c.Camera != nil {
		one.Publish()
	}
	return one
}

func New(t testing.TB, config Config) *Client {
	t.Helper()
	c := &Client{
		TB: t, Config: config, joined: make(chan *livekit.JoinResponse, 1), Seen: make(chan []byte, 1000),
		Heard: make(chan []byte, 1000), Leaves: make(chan *livekit.LeaveRequest, 10),
		Updates: make(chan *livekit.ParticipantUpdate, 10), Resumed: make(chan struct{}, 10),
		Answered: make(chan struct{}, 100),
	}
	if len(c.Networks) == 0 {
		c.Networks = []webrtc.NetworkType{webrtc.NetworkTypeUDP4}
	}
	c.life, c.stop = context.WithCancel(context.WithoutCancel(t.Context()))
	// Do not keep a closed client in memory until the test ends.
	var open atomic.Pointer[Client]
	open.Store(c)
	t.Cleanup(func() {
		if c := open.Load(); c != nil {
			c.Close()
		}
	})
	context.AfterFunc(c.life, func() { open.Store(nil) })
	c.key.Store(true)
	c.Own = c.peer()
	c.Other = c.Own
	if c.Version == livekit.Version0 {
		c.Other = c.peer()
	}
	return c
}

// Close disconnects the client without a leave message. It may be called more than once.
func (c *Client) Close() {
	c.stop()
	if c.socket != nil {
		_ = c.socket.CloseNow()
	}
	_ = c.Own.Close()
	_ = c.Other.Close()
}

func (c *Client) Open() {
	c.Helper()
	query := ""
	if c.Version == livekit.Version1 {
		for _, kind := range []webrtc.RTPCodecType{webrtc.RTPCodecTypeAudio, webrtc.RTPCodecTypeVideo} {
			_, err := c.Own.AddTransceiverFromKind(kind, webrtc.RTPTransceiverInit{
				Direction: webrtc.RTPTransceiverDirectionRecvonly,
			})
			c.must(err)
		}
		_, err := c.Own.CreateDataChannel("_reliable", nil)
		c.must(err)
		query = "&join_request=" + Wrapped(&livekit.JoinRequest{PublisherOffer: c.Offer(1, false)})
	}
	c.Dial(query)
	select {
	case c.Joined = <-c.joined:
	case <-time.After(await.Max):
		c.Fatal("the server does not list the participants")
	}
	if c.Version == livekit.Version1 {
		Await(c, "the first offer is answered", c.Answered)
	}
}

func Await[T any](c *Client, what string, from <-chan T) T {
	c.Helper()
	select {
	case one := <-from:
		return one
	case <-time.After(await.Max):
		c.Fatalf("timed out waiting for: %s", what)
		panic("unreachable")
	}
}

func Wrapped(join *livekit.JoinRequest) string {
	return base64.URLEncoding.EncodeToString(
		livekit.Marshal(&livekit.WrappedJoinRequest{JoinRequest: livekit.Marshal(join)}))
}

func Forged(token string) string {
	return token[:strings.LastIndexByte(token, '.')+1] + strings.Repeat("A", 43)
}

func (c *Client) must(err error) {
	c.Helper()
	if err != nil && c.life.Err() == nil {
		c.Error(err)
	}
}

func (c *Client) peer() *webrtc.PeerConnection {
	c.Helper()
	var settings webrtc.SettingEngine
	settings.SetIncludeLoopbackCandidate(true)
	settings.SetNetworkTypes(c.Networks)
	settings.SetIPFilter(func(ip net.IP) bool { return ip.IsLoopback() })
	var way webrtc.Configuration
	if c.Reach != nil {
		c.Reach(&settings, &way)
	}
	engine, registry := &webrtc.MediaEngine{}, &interceptor.Registry{}
	c.must(registerCodecs(engine))
	c.must(webrtc.ConfigureSimulcastExtensionHeaders(engine))
	registry.Add(&tap{client: c})
	c.must(webrtc.RegisterDefaultInterceptors(engine, registry))
	api := webrtc.NewAPI(webrtc.WithSettingEngine(settings), webrtc.WithMediaEngine(engine),
		webrtc.WithInterceptorRegistry(registry))
	pc, err := api.NewPeerConnection(way)
	c.must(err)
	pc.OnTrack(func(track *webrtc.TrackRemote, _ *webrtc.RTPReceiver) {
		if track.Kind() == webrtc.RTPCodecTypeVideo {
			c.see(pc, track)
		} else {
			c.hear(track)
		}
	})
	return pc
}

// registerCodecs registers VP8 and Opus without a separate retransmission stream, because the
// library would request retransmitted packets again.
func registerCodecs(m *webrtc.MediaEngine) error {
	return errors.Join(
		m.RegisterCodec(webrtc.RTPCodecParameters{PayloadType: 96, RTPCodecCapability: webrtc.RTPCodecCapability{
			MimeType: webrtc.MimeTypeVP8, ClockRate: videoClock,
			RTCPFeedback: []webrtc.RTCPFeedback{{Type: "nack"}, {Type: "nack", Parameter: "pli"}},
		}}, webrtc.RTPCodecTypeVideo),
		m.RegisterCodec(webrtc.RTPCodecParameters{PayloadType: 111, RTPCodecCapability: webrtc.RTPCodecCapability{
			MimeType: webrtc.MimeTypeOpus, ClockRate: audioClock, Channels: 2,
		}}, webrtc.RTPCodecTypeAudio),
	)
}

type tap struct {
	interceptor.NoOp
	client *Client
}

func (p *tap) NewInterceptor(string) (interceptor.Interceptor, error) { return p, nil }

func (p *tap) BindLocalStream(_ *interceptor.StreamInfo, w interceptor.RTPWriter) interceptor.RTPWriter {
	p.client.Packets.Store(&w)
	return w
}

// see sends a track's frames to Seen. Like a decoder, it requests key frames.
func (c *Client) see(pc *webrtc.PeerConnection, track *webrtc.TrackRemote) {
	frames := samplebuilder.New(1000, &codecs.VP8Packet{}, track.Codec().ClockRate,
		samplebuilder.WithMaxTimeDelay(lostTime))
	lost := time.Now()
	for {
		packet, _, err := track.ReadRTP()
		if err != nil {
			return
		}
		frames.Push(packet)
		for sample := frames.Pop(); sample != nil; sample = frames.Pop() {
			put(c.Seen, sample.Data)
			if sample.PrevDroppedPackets > 0 && time.Since(lost) > lostTime {
				lost = time.Now()
				_ = pc.WriteRTCP([]rtcp.Packet{&rtcp.PictureLossIndication{MediaSSRC: uint32(track.SSRC())}})
			}
		}
	}
}

func (c *Client) hear(track *webrtc.TrackRemote) {
	for {
		packet, _, err := track.ReadRTP()
		if err != nil {
			return
		}
		put(c.Heard, packet.Payload)
	}
}

// put drops an element if the channel is full.
func put[T any](to chan<- T, one T) {
	select {
	case to <- one:
	default:
	}
}

func (c *Client) Offer(id uint32, restart bool) *livekit.SessionDescription {
	c.Helper()
	gathered := webrtc.GatheringCompletePromise(c.Own)
	offer, err := c.Own.CreateOffer(&webrtc.OfferOptions{ICERestart: restart})
	c.must(err)
	c.must(c.Own.SetLocalDescription(offer))
	<-gathered
	text := c.Own.LocalDescription().SDP
	if c.Change != nil {
		text = c.Change(text)
	}
	return &livekit.SessionDescription{Type: "offer", Sdp: text, Id: id}
}

func (c *Client) Dial(query string) {
	c.Helper()
	if err := c.TryDial(query); err != nil {
		c.Fatal(err)
	}
}

// TryDial is like Dial, but returns an error, which contains the status if the client was rejected.
func (c *Client) TryDial(query string) error {
	path := "/rtc"
	if c.Version == livekit.Version1 {
		path += "/v1"
	}
	ctx, cancel := context.WithTimeout(c.life, await.Max)
	defer cancel()
	socket, _, err := websocket.Dial(ctx, c.URL+path+"?access_token="+c.Token+query, nil)
	if err != nil {
		return err
	}
	socket.SetReadLimit(1 << 20)
	c.socket = socket
	go c.listen(socket)
	return nil
}

func (c *Client) Drop() { _ = c.socket.CloseNow() }

// Resume reopens the lost signaling connection and sends an offer that restarts ICE.
func (c *Client) Resume() {
	c.Helper()
	query := "&reconnect=1&sid=" + c.Joined.Participant.Sid
	if c.Version == livekit.Version1 {
		query = "&join_request=" + Wrapped(&livekit.JoinRequest{
			Reconnect: true, ParticipantSid: c.Joined.Participant.Sid,
		})
	}
	c.Dial(query)
	Await(c, "the client is resumed", c.Resumed)
	c.Negotiate(true)
}

// Say sends a message. It fails once signaling has been lost.
func (c *Client) Say(m *livekit.SignalRequest) {
	c.Write(livekit.Marshal(m))
}

func (c *Client) Write(content []byte) {
	_ = c.socket.Write(c.life, websocket.MessageBinary, content)
}

func (c *Client) listen(socket *websocket.Conn) {
	for {
		_, content, err := socket.Read(c.life)
		if err != nil {
			return
		}
		var m livekit.SignalResponse
		c.must(livekit.Unmarshal(content, &m))
		switch {
		case m.Join != nil:
			put(c.joined, m.Join)
		case m.Reconnect != nil:
			put(c.Resumed, struct{}{})
		case m.Answer != nil:
			c.must(c.Own.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeAnswer, SDP: m.Answer.Sdp}))
			put(c.Answered, struct{}{})
		case m.Offer != nil:
			c.answer(m.Offer.Sdp)
		case m.Update != nil:
			put(c.Updates, m.Update)
		case m.Leave != nil:
			put(c.Leaves, m.Leave)
		}
	}
}

func (c *Client) answer(offer string) {
	c.must(c.Other.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeOffer, SDP: offer}))
	answer, err := c.Other.CreateAnswer(nil)
	c.must(err)
	c.must(c.Other.SetLocalDescription(answer))
	c.Say(&livekit.SignalRequest{
		Answer: &livekit.SessionDescription{Type: "answer", Sdp: answer.SDP},
	})
}

const videoClock, audioClock = 90_000, 48_000

// Negotiate sends an offer and waits for the answer. restart makes the offer restart ICE.
func (c *Client) Negotiate(restart bool) {
	c.Helper()
	c.Say(&livekit.SignalRequest{Offer: c.Offer(2, restart)})
	Await(c, "the offer is answered", c.Answered)
}

func (c *Client) Sees(frames int) {
	c.Helper()
	for range frames {
		Await(c, "a frame is returned", c.Seen)
	}
}

func (c *Client) Left() *livekit.LeaveRequest {
	c.Helper()
	return Await(c, "the server asks the client to leave", c.Leaves)
}
