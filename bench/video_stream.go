package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
	"github.com/pion/webrtc/v4"
	"github.com/pion/webrtc/v4/pkg/media"
	"golang.org/x/sync/errgroup"

	"cutroom/shared/platform/clock"
	"cutroom/shared/platform/vp8/libvpx"
	"cutroom/shared/service/realtime/livekit"
	"cutroom/shared/testkit/servertest"
)

const (
	// videoStreams is the number of streams that are forwarded concurrently. Each has videoBitrate kbit/s and
	// videoRate frames per second.
	videoStreams, videoBitrate, videoRate = 4, 1500, 25
	videoStreamTime                       = 18 * time.Second // long enough to send the frames three times
	// streamBar is the maximum CPU time of a stream, as a multiple of libvpx's time.
	streamBar = 1.3
)

// videoCost measures the CPU time of forwarded streams, alternating with the floor: libvpx decoding
// and encoding the same frames at the same rate.
func (b *bench) videoCost(ctx context.Context) error {
	library, err := libvpx.Load("")
	if err != nil {
		return err
	}
	frames, err := b.stream(ctx, library, image.Pt(640, 360), videoBitrate)
	if err != nil {
		return err
	}
	server, stop, err := b.serveVideo(ctx, "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer stop()
	var measured, floor []time.Duration
	var shown float64
	for range videoRounds {
		passed, err := b.passStreams(ctx, server, frames)
		if err != nil {
			return err
		}
		alone, err := passPaced(ctx, library, frames, passed.bitrate)
		if err != nil {
			return err
		}
		measured, floor = append(measured, passed.each), append(floor, alone)
		shown += passed.shown / videoRounds
	}
	each, alone := median(measured), median(floor)
	b.table.add(row{
		what: fmt.Sprintf("CPU time of a 640x360 picture passed through, of %d streams at %d/s (load %s)",
			videoStreams, videoRate, load()),
		measured: short(each), floor: short(alone) + " libvpx alone", ratio: ratio(each, alone),
		bar: fmt.Sprintf("%.1f x", streamBar), verdict: verdictOf(each.Seconds() <= streamBar*alone.Seconds()),
	})
	b.table.add(row{
		what:     "  such streams that one core can relay",
		measured: fmt.Sprintf("%.1f", 1/(each.Seconds()*videoRate)),
		floor:    fmt.Sprintf("%.1f libvpx alone", 1/(alone.Seconds()*videoRate)), ratio: "-", bar: "-", verdict: noBar,
	})
	b.table.add(row{
		what: "  returned pictures", measured: percent(shown), floor: "-", ratio: "-", bar: "-", verdict: noBar,
	})
	return nil
}

// shown is the fraction of frames returned. bitrate is a returned stream's bitrate in kbit/s.
type passedStreams struct {
	each    time.Duration
	shown   float64
	bitrate int
}

func (b *bench) passStreams(ctx context.Context, server *servertest.Server, frames [][]byte) (p passedStreams, err error) {
	begun, err := processorTimeOf(server.PID())
	if err != nil {
		return p, err
	}
	var pictures, received atomic.Int64
	streams, streaming := errgroup.WithContext(ctx)
	for range videoStreams {
		streams.Go(func() error {
			stream, err := openStream(streaming, streamURL(server), frames)
			if err != nil {
				return err
			}
			defer stream.close()
			err = stream.run(streaming, videoStreamTime)
			pictures.Add(stream.pictures.Load())
			received.Add(stream.bytes.Load())
			return err
		})
	}
	if err := streams.Wait(); err != nil {
		return p, err
	}
	if err := awaitEnd(ctx, server); err != nil {
		return p, err
	}
	ended, err := processorTimeOf(server.PID())
	n := pictures.Load()
	if n == 0 {
		err = errors.Join(err, errors.New("no picture was returned"))
	}
	if err != nil {
		return p, err
	}
	return passedStreams{
		(ended - begun) / time.Duration(n), float64(n) / (videoStreams * videoRate * videoStreamTime.Seconds()),
		int(received.Load() * 8 / 1000 * videoRate / n),
	}, nil
}

// awaitEnd waits until no session is open, because a helper's CPU time is counted only after it has exited.
func awaitEnd(ctx context.Context, server *servertest.Server) error {
	for {
		answer, err := server.Client().Get(ctx, "/v1/realtime/quota")
		if err != nil {
			return err
		}
		ended := strings.Contains(string(answer.Body), `"active":0`)
		// A session's slot becomes free before its helper has exited, so wait once more.
		if !clock.Wait(ctx, time.Second) || ended {
			return ctx.Err()
		}
	}
}

// passPaced returns libvpx's CPU time per frame for decoding and encoding in this process, with the same frame rate
// and number of streams as the server.
func passPaced(ctx context.Context, l *libvpx.Library, frames [][]byte, bitrate int) (time.Duration, error) {
	looped := slices.Repeat(frames, int(videoStreamTime*videoRate/time.Second)/len(frames))
	streams, ctx := errgroup.WithContext(ctx)
	took, err := timed(func() error {
		for range videoStreams {
			streams.Go(func() error {
				ticker := time.NewTicker(time.Second / videoRate)
				defer ticker.Stop()
				return passDirect(l, looped, bitrate, func() error {
					select {
					case <-ctx.Done():
						return ctx.Err()
					case <-ticker.C:
						return nil
					}
				})
			})
		}
		return streams.Wait()
	})
	return took / time.Duration(videoStreams*len(looped)), err
}

func processorTimeOf(pid int) (sum time.Duration, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// Skip the name in parentheses, which may contain spaces. utime is the 12th field after it (proc(5)).
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 15 {
		return 0, fmt.Errorf("cannot read the status of process %d", pid)
	}
	for _, field := range fields[11:15] {
		ticks, err := strconv.Atoi(field)
		if err != nil {
			return 0, err
		}
		sum += time.Duration(ticks) * time.Second / 100
	}
	return sum, nil
}

// stream is a client without a browser. It sends encoded frames and counts the returned frames.
type stream struct {
	control, signal *websocket.Conn
	peer            *webrtc.PeerConnection
	track           *webrtc.TrackLocalStaticSample
	frames          [][]byte
	connected       chan struct{}
	pictures, bytes atomic.Int64
}

func openStream(ctx context.Context, url string, frames [][]byte) (*stream, error) {
	session, err := openLive(ctx, url)
	if err != nil {
		return nil, err
	}
	s := &stream{control: session.Conn, frames: frames, connected: make(chan struct{})}
	if err := s.join(ctx); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *stream) join(ctx context.Context) (err error) {
	if err := s.control.Write(ctx, websocket.MessageText, []byte(`{"type":"livekit_join"}`)); err != nil {
		return err
	}
	var info struct {
		Type, Token string
		URL         string `json:"livekit_url"`
	}
	for info.Type != "livekit_room_info" {
		_, message, err := s.control.Read(ctx)
		if err != nil {
			return err
		}
		if err := json.Unmarshal(message, &info); err != nil {
			return err
		}
	}
	go func() { // discard the server's tick messages
		for {
			if _, _, err := s.control.Read(ctx); err != nil {
				return
			}
		}
	}()
	offer, err := s.offer()
	if err != nil {
		return err
	}
	return s.enter(ctx, info.URL+"/rtc/v1?access_token="+info.Token, offer)
}

func (s *stream) offer() (string, error) {
	var settings webrtc.SettingEngine
	settings.SetIncludeLoopbackCandidate(true)
	settings.SetIPFilter(func(ip net.IP) bool { return ip.IsLoopback() })
	settings.SetNetworkTypes([]webrtc.NetworkType{webrtc.NetworkTypeUDP4})
	var err error
	if s.peer, err = webrtc.NewAPI(webrtc.WithSettingEngine(settings)).NewPeerConnection(webrtc.Configuration{}); err != nil {
		return "", err
	}
	connected := sync.OnceFunc(func() { close(s.connected) })
	s.peer.OnConnectionStateChange(func(state webrtc.PeerConnectionState) {
		if state == webrtc.PeerConnectionStateConnected {
			connected()
		}
	})
	s.peer.OnTrack(func(track *webrtc.TrackRemote, _ *webrtc.RTPReceiver) {
		for {
			packet, _, err := track.ReadRTP()
			if err != nil {
				return
			}
			s.bytes.Add(int64(len(packet.Payload)))
			if packet.Marker {
				s.pictures.Add(1)
			}
		}
	})
	capability := webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypeVP8, ClockRate: 90_000}
	if s.track, err = webrtc.NewTrackLocalStaticSample(capability, "camera", "bench"); err != nil {
		return "", err
	}
	receives := webrtc.RTPTransceiverInit{Direction: webrtc.RTPTransceiverDirectionRecvonly}
	if _, err := s.peer.AddTransceiverFromKind(webrtc.RTPCodecTypeVideo, receives); err != nil {
		return "", err
	}
	sends := webrtc.RTPTransceiverInit{Direction: webrtc.RTPTransceiverDirectionSendonly}
	if _, err := s.peer.AddTransceiverFromTrack(s.track, sends); err != nil {
		return "", err
	}
	gathered := webrtc.GatheringCompletePromise(s.peer)
	offer, err := s.peer.CreateOffer(nil)
	if err == nil {
		err = s.peer.SetLocalDescription(offer)
	}
	if err != nil {
		return "", err
	}
	<-gathered
	return s.peer.LocalDescription().SDP, nil
}

// enter exchanges signaling messages until the room has responded.
func (s *stream) enter(ctx context.Context, url, offer string) (err error) {
	request := livekit.Marshal(&livekit.JoinRequest{
		PublisherOffer: &livekit.SessionDescription{Type: "offer", Sdp: offer},
	})
	wrapped := livekit.Marshal(&livekit.WrappedJoinRequest{JoinRequest: request})
	url += "&join_request=" + base64.RawURLEncoding.EncodeToString(wrapped)
	if s.signal, _, err = websocket.Dial(ctx, url, nil); err != nil {
		return err
	}
	s.signal.SetReadLimit(-1)
	for {
		_, content, err := s.signal.Read(ctx)
		if err != nil {
			return err
		}
		var message livekit.SignalResponse
		if err := livekit.Unmarshal(content, &message); err != nil {
			return err
		}
		if answer := message.Answer; answer != nil {
			return s.peer.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeAnswer, SDP: answer.Sdp})
		}
	}
}

func (s *stream) run(ctx context.Context, length time.Duration) error {
	select {
	case <-s.connected:
	case <-ctx.Done():
		return ctx.Err()
	}
	ticker := time.NewTicker(time.Second / videoRate)
	defer ticker.Stop()
	for i := range int(length / (time.Second / videoRate)) {
		sample := media.Sample{Data: s.frames[i%len(s.frames)], Duration: time.Second / videoRate}
		if err := s.track.WriteSample(sample); err != nil {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (s *stream) close() {
	if s.peer != nil {
		_ = s.peer.Close() // an error does not matter here
	}
	if s.signal != nil {
		_ = s.signal.CloseNow()
	}
	_ = s.control.CloseNow()
}
