package room

import (
	"bytes"
	"sync"
	"time"

	"github.com/pion/rtcp"
	"github.com/pion/rtp"
	"github.com/pion/webrtc/v4"
)

// The clock rates of RTP timestamps.
const videoClock, audioClock = 90_000, 48_000

const (
	maxPacket = 1500
	// askEvery is how often to check for missing packets to request.
	askEvery = 5 * time.Millisecond
	// keyEvery is the minimum interval between key frame requests, and between the key frames that are sent.
	keyEvery = 250 * time.Millisecond
)

type receiver struct {
	room  *Room
	peer  *peer
	track *webrtc.TrackRemote

	replaced  chan struct{}
	assembler *assembler
	// color is the id of the color space extension. colored means that a packet since the last key
	// frame had the extension.
	color   uint8
	colored bool

	mu sync.Mutex
	// needsKey is true until a key frame arrives. asked is when a key frame was last requested.
	needsKey bool
	asked    time.Time
}

func newReceiver(r *Room, p *peer, track *webrtc.TrackRemote, color uint8) *receiver {
	return &receiver{room: r, peer: p, track: track, color: color, needsKey: true,
		replaced: make(chan struct{}), assembler: newAssembler()}
}

func (v *receiver) run() {
	packets := make(chan *rtp.Packet, 256)
	go func() {
		defer close(packets)
		// The library's ReadRTP would allocate a full-size buffer for each packet.
		content := make([]byte, maxPacket)
		for {
			n, _, err := v.track.Read(content)
			if err != nil {
				return
			}
			packet := &rtp.Packet{}
			if packet.Unmarshal(bytes.Clone(content[:n])) == nil {
				packets <- packet
			}
		}
	}()
	ticker := time.NewTicker(keyEvery)
	defer ticker.Stop()
	looking := time.NewTimer(askEvery)
	defer looking.Stop()
	v.demand()
	for {
		select {
		case <-v.replaced:
			v.assembler = nil
			for range packets { // the library would keep unread packets
			}
			return
		case packet, more := <-packets:
			if !more {
				return
			}
			v.room.config.Heard()
			v.colored = v.room.color.read(packet, v.color) || v.colored
			waited := v.assembler.waits()
			v.deliver(v.assembler.push(packet, time.Now()))
			if !waited && v.assembler.waits() {
				looking.Reset(askEvery)
			}
		case <-looking.C:
			v.requestMissing()
			if v.assembler.waits() {
				looking.Reset(askEvery)
			}
		case <-ticker.C:
			v.mu.Lock()
			needed := v.needsKey
			v.mu.Unlock()
			if needed {
				v.demand()
			}
		}
	}
}

func (v *receiver) requestMissing() {
	numbers, lost, whole := v.assembler.ask(time.Now())
	if len(numbers) > 0 {
		// The write fails if the peer is closed, which also ends the track.
		_ = v.peer.WriteRTCP([]rtcp.Packet{&rtcp.TransportLayerNack{
			MediaSSRC: uint32(v.track.SSRC()), Nacks: rtcp.NackPairsFromSequenceNumbers(numbers),
		}})
	}
	if lost {
		v.wantKey()
	}
	v.deliver(whole)
}

// deliver passes frames to the session. After a missing frame, it drops frames until a key frame arrives.
func (v *receiver) deliver(whole []assembled) {
	for _, frame := range whole {
		key := len(frame.data) > 0 && frame.data[0]&1 == 0
		if frame.gap && !key {
			v.wantKey()
		}
		if key && !v.colored {
			v.room.color.Store(nil)
		}
		v.colored = v.colored && !key
		v.mu.Lock()
		v.needsKey = v.needsKey && !key
		dropped := v.needsKey
		v.mu.Unlock()
		if dropped {
			continue
		}
		now := time.Now()
		data, trailer := splitTrailer(frame.data)
		if !v.room.take(v, Frame{Data: data, Trailer: trailer, Key: key, Timestamp: frame.timestamp, Arrived: now}) {
			v.wantKey()
		}
	}
}

// wantKey drops frames until the next key frame and requests it.
func (v *receiver) wantKey() {
	v.mu.Lock()
	v.needsKey = true
	soon := time.Since(v.asked) < keyEvery
	v.mu.Unlock()
	if !soon {
		v.demand()
	}
}

func (v *receiver) demand() {
	v.mu.Lock()
	v.asked = time.Now()
	v.mu.Unlock()
	_ = v.peer.WriteRTCP([]rtcp.Packet{&rtcp.PictureLossIndication{MediaSSRC: uint32(v.track.SSRC())}})
}
