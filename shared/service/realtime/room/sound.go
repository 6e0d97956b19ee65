package room

import (
	"bytes"
	"sync/atomic"
	"time"

	"github.com/pion/rtp"
	"github.com/pion/webrtc/v4"
	"golang.org/x/time/rate"
)

const (
	// maxSound limits the waiting sound packets. Each lasts 20 ms.
	maxSound = 100
	maxDelay = time.Second
	// soundRate and soundBurst limit the packets per second. Browsers send 50, or 100 if asked.
	soundRate, soundBurst = 120, 200
	// maxSoundSize limits a packet's sound in bytes. An Opus frame has at most 1,275.
	maxSoundSize = 1300
)

// sound forwards a client's sound with the same delay as the edited frames.
type sound struct {
	room    *Room
	waiting chan heardPacket
	delays  chan time.Duration
	done    chan struct{}
	rate    *rate.Limiter
	// current is the track that is forwarded; it may be nil.
	current atomic.Pointer[webrtc.TrackRemote]

	track *webrtc.TrackRemote
	times timeline
}

type heardPacket struct {
	packet *rtp.Packet
	track  *webrtc.TrackRemote
	at     time.Time
}

func newSound(r *Room) *sound {
	return &sound{
		room: r, waiting: make(chan heardPacket, maxSound), delays: make(chan time.Duration, 1),
		done: make(chan struct{}), rate: rate.NewLimiter(soundRate, soundBurst), times: timeline{rate: audioClock},
	}
}

// receive forwards a track until the track ends or another track starts.
func (s *sound) receive(track *webrtc.TrackRemote) {
	s.current.Store(track)
	defer s.current.CompareAndSwap(track, nil)
	content := make([]byte, maxPacket)
	for {
		n, _, err := track.Read(content)
		if err != nil {
			return
		}
		s.current.CompareAndSwap(nil, track) // the other track may have ended
		packet := &rtp.Packet{}
		if s.current.Load() != track || !s.rate.Allow() || packet.Unmarshal(bytes.Clone(content[:n])) != nil ||
			len(packet.Payload) > maxSoundSize {
			continue
		}
		s.room.config.Heard()
		select {
		case s.waiting <- heardPacket{packet, track, time.Now()}:
		default: // the video is so late that too many packets are waiting
		}
	}
}

// follow adapts the sound's delay to the delay of the last frame.
func (s *sound) follow(delay time.Duration) {
	select {
	case s.delays <- delay:
	default:
	}
}

func (s *sound) play() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var delay time.Duration
	for {
		select {
		case <-s.done:
			return
		case last := <-s.delays:
			// A single late frame hardly changes the delay.
			delay += (min(last, maxDelay) - delay) / 16
		case next := <-s.waiting:
			timer.Reset(time.Until(next.at.Add(delay)))
			select {
			case <-s.done:
				return
			case <-timer.C:
			}
			s.send(next)
		}
	}
}

func (s *sound) send(heard heardPacket) {
	packet := heard.packet
	if s.track != heard.track {
		s.track = heard.track
		s.times.turn(packet.Timestamp, packet.SequenceNumber, heard.at)
	}
	packet.Timestamp, packet.SequenceNumber = s.times.place(packet.Timestamp, packet.SequenceNumber, heard.at)
	// The client's header extensions are only for the server.
	packet.Header.Extension, packet.Header.Extensions = false, nil
	// The write fails for participants that are leaving.
	_ = s.room.audio.WriteRTP(packet)
}

func (s *sound) close() { close(s.done) }
