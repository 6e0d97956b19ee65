package room

import (
	"sync"
	"time"

	"github.com/pion/interceptor"
	"github.com/pion/rtp"
)

const (
	// paceFactor is the ratio of the send rate to the estimated bandwidth. A frame must be sent
	// well before the next one is due.
	paceFactor = 2.5
	// paceBurst is the number of bytes that may be sent unpaced, about the size of a typical frame.
	paceBurst = 12 << 10
	paceEvery = 5 * time.Millisecond
	// paceMost limits the bytes that may wait. Packets that would wait for more than a second are dropped.
	paceMost = 1 << 20
)

// pacer sends a peer's video packets at paceFactor times the estimated bandwidth. The library's own pacer would drop
// retransmissions, because it finds streams by SSRC.
type pacer struct {
	mu sync.Mutex
	// writer can send packets of any stream.
	writer interceptor.RTPWriter
	// budget is the number of bytes that may be sent now. rate is in bytes per second.
	rate, budget float64
	refilled     time.Time
	waiting      []pacedPacket
	bytes        int
	// running means that a timer is set for the waiting packets.
	running, closed bool
}

type pacedPacket struct {
	header     *rtp.Header
	payload    []byte
	attributes interceptor.Attributes
}

func newPacer(bitrate int) *pacer {
	p := &pacer{budget: paceBurst, refilled: time.Now()}
	p.SetTargetBitrate(bitrate)
	return p
}

func (p *pacer) AddStream(_ uint32, writer interceptor.RTPWriter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writer = writer
}

func (p *pacer) SetTargetBitrate(bitrate int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rate = float64(bitrate) / 8 * paceFactor
}

func (p *pacer) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed, p.waiting, p.bytes = true, nil, 0
	return nil
}

func (p *pacer) Write(header *rtp.Header, payload []byte, attributes interceptor.Attributes) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	size := header.MarshalSize() + len(payload)
	if p.closed || p.writer == nil || p.bytes+size > paceMost {
		return size, nil
	}
	p.refill()
	if len(p.waiting) == 0 && p.budget > 0 {
		p.budget -= float64(size)
		return p.writer.Write(header, payload, attributes)
	}
	// Copy the header and the payload, because the caller reuses them.
	copied := header.Clone()
	p.waiting = append(p.waiting, pacedPacket{&copied, append([]byte(nil), payload...), attributes})
	p.bytes += size
	if !p.running {
		p.running = true
		time.AfterFunc(paceEvery, p.send)
	}
	return size, nil
}

func (p *pacer) refill() {
	now := time.Now()
	p.budget = min(p.budget+now.Sub(p.refilled).Seconds()*p.rate, paceBurst)
	p.refilled = now
}

func (p *pacer) send() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refill()
	sent := 0
	for ; sent < len(p.waiting) && p.budget > 0; sent++ {
		next := p.waiting[sent]
		size := next.header.MarshalSize() + len(next.payload)
		p.budget -= float64(size)
		p.bytes -= size
		// A packet that cannot be sent is treated as lost.
		_, _ = p.writer.Write(next.header, next.payload, next.attributes)
	}
	p.waiting = p.waiting[sent:]
	if len(p.waiting) == 0 {
		p.waiting, p.running = nil, false
		return
	}
	time.AfterFunc(paceEvery, p.send)
}
