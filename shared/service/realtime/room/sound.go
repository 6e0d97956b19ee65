package room

import (
	"time"

	"github.com/pion/rtp"
	"github.com/pion/webrtc/v4"
)

const (
	// maxSound is how many packets of sound wait, 20 ms each.
	maxSound = 100
	// maxDelay is the longest delay of the sound.
	maxDelay = time.Second
)

// sound passes a client's sound on, as late as its pictures are by the time they are
// edited, so that both stay together.
type sound struct {
	room    *Room
	waiting chan heardPacket
	delays  chan time.Duration
	done    chan struct{}

	// track is where the sound comes from, times those of all tracks together.
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
		done: make(chan struct{}), times: timeline{rate: audioClock},
	}
}

// receive receives a track until it ends.
func (s *sound) receive(track *webrtc.TrackRemote) {
	for {
		packet, _, err := track.ReadRTP()
		if err != nil {
			return
		}
		s.room.config.Heard()
		select {
		case s.waiting <- heardPacket{packet, track, time.Now()}:
		default: // the pictures are later than sound is kept for
		}
	}
}

// follow tells how long the last picture took.
func (s *sound) follow(delay time.Duration) {
	select {
	case s.delays <- delay:
	default:
	}
}

// play sends the sound on until the room is closed.
func (s *sound) play() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var delay time.Duration
	for {
		select {
		case <-s.done:
			return
		case last := <-s.delays:
			// A single late picture moves it little.
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

// send sends a packet, of whichever track it came.
func (s *sound) send(heard heardPacket) {
	packet := heard.packet
	if s.track != heard.track {
		s.track = heard.track
		s.times.turn(packet.Timestamp, packet.SequenceNumber, heard.at)
	}
	packet.Timestamp, packet.SequenceNumber = s.times.place(packet.Timestamp, packet.SequenceNumber, heard.at)
	// What clients add to their packets is meant for the server.
	packet.Header.Extension, packet.Header.Extensions = false, nil
	// It fails for those who leave just now.
	_ = s.room.audio.WriteRTP(packet)
}

func (s *sound) close() { close(s.done) }
