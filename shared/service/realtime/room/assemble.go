package room

import (
	"slices"
	"time"

	"github.com/pion/rtp"
	"github.com/pion/rtp/codecs"
)

const (
	// maxGap is the maximum number of consecutive missing packets. Beyond that, the stream restarts.
	maxGap = 512
	// maxEncoded limits the bytes of a frame's packets. maxHeld limits the number of packets that
	// are held or missing.
	maxEncoded, maxHeld = 1 << 20, 2048
	// reorderTime is how long to wait for a late packet before requesting it again.
	reorderTime = 4 * time.Millisecond
	// lostTime is the longest wait for a packet. After that time, requesting a key frame is faster than waiting
	// longer.
	lostTime = 400 * time.Millisecond
)

// assembler builds frames from the packets of a VP8 stream (RFC 7741), which may be reordered,
// duplicated or lost. A frame is complete when it has all packets up to its last one.
type assembler struct {
	begun bool
	// next is the sequence number of the next frame's first packet. newest is the sequence number
	// of the latest packet.
	next, newest uint16
	have         map[uint16]part
	missing      map[uint16]absence
	held         int
	// reached is the first unchecked packet of the next frame. size is the number of bytes before that packet.
	reached uint16
	size    int
	// gap means that packets before the next frame are missing.
	gap bool
	// dropping means that packets of an abandoned frame are being skipped.
	dropping bool
}

type part struct {
	data      []byte
	timestamp uint32
	// size is the size of the entire packet, because the slice data keeps the entire packet in memory.
	size        int
	first, last bool
}

type absence struct {
	since, asked time.Time
	times        int
}

type assembled struct {
	data      []byte
	timestamp uint32
	// gap means that an earlier frame is missing.
	gap bool
}

func newAssembler() *assembler {
	return &assembler{have: map[uint16]part{}, missing: map[uint16]absence{}}
}

func (a *assembler) push(p *rtp.Packet, now time.Time) []assembled {
	one, ok := partOf(p)
	if !ok {
		return nil
	}
	number := p.SequenceNumber
	if !a.begun {
		if !one.first {
			return nil
		}
		a.begun, a.next, a.newest, a.reached = true, number, number-1, number
	}
	switch ahead := int16(number - a.newest); {
	case int16(number-a.next) < 0:
		return nil // the packet is a duplicate or too late
	case ahead > maxGap, len(a.have) >= maxHeld, int16(number-a.next) > maxHeld:
		a.restart()
		return nil
	case ahead > 0:
		for absent := a.newest + 1; absent != number; absent++ {
			a.missing[absent] = absence{since: now}
		}
		a.newest = number
	default:
		delete(a.missing, number)
	}
	a.held += one.size - a.have[number].size
	a.have[number] = one
	if a.held > maxEncoded {
		a.restart()
	}
	return a.frames()
}

func partOf(p *rtp.Packet) (part, bool) {
	if len(p.Payload) == 0 { // padding that probes the network
		return part{}, true
	}
	var v codecs.VP8Packet
	data, err := v.Unmarshal(p.Payload)
	if err != nil {
		return part{}, false
	}
	return part{data, p.Timestamp, p.MarshalSize(), v.S == 1 && v.PID == 0, p.Marker}, true
}

// restart drops everything, because the missing packets will not arrive.
func (a *assembler) restart() {
	clear(a.have)
	clear(a.missing)
	*a = assembler{have: a.have, missing: a.missing, gap: true}
}

func (a *assembler) frames() (whole []assembled) {
	for {
		first, there := a.have[a.next]
		switch {
		case !there:
			return whole
		case first.first:
			frame, ok := a.take()
			if !ok {
				return whole
			}
			a.dropping = false
			whole = append(whole, frame)
		default: // padding, or the rest of an abandoned frame
			if len(first.data) > 0 && !a.dropping {
				a.gap, a.dropping = true, true
			}
			a.advance()
		}
	}
}

// take removes and returns the next frame if it is complete.
func (a *assembler) take() (assembled, bool) {
	for {
		one, there := a.have[a.reached]
		if !there {
			return assembled{}, false
		}
		a.size += len(one.data)
		a.reached++
		if one.last {
			break
		}
	}
	frame := assembled{make([]byte, 0, a.size), a.have[a.next].timestamp, a.gap}
	a.gap = false
	for a.next != a.reached {
		frame.data = append(frame.data, a.have[a.next].data...)
		a.advance()
	}
	return frame, true
}

func (a *assembler) advance() {
	delete(a.missing, a.next)
	a.held -= a.have[a.next].size
	delete(a.have, a.next)
	a.next++
	if int16(a.next-a.reached) >= 0 {
		a.reached, a.size = a.next, 0
	}
}

func (a *assembler) waits() bool { return len(a.missing) > 0 }

// ask returns the numbers of the packets to request now. lost means that packets were abandoned, so
// a key frame is needed. whole contains the frames that were waiting for abandoned packets.
func (a *assembler) ask(now time.Time) (numbers []uint16, lost bool, whole []assembled) {
	for number, absent := range a.missing {
		switch age := now.Sub(absent.since); {
		case age > lostTime:
			lost = true
		case age >= reorderTime && now.Sub(absent.asked) >= repeatAfter(absent.times):
			absent.asked = now
			absent.times++
			a.missing[number] = absent
			numbers = append(numbers, number)
		}
	}
	if lost {
		return nil, true, a.skip(now)
	}
	slices.Sort(numbers)
	return numbers, false, nil
}

// repeatAfter returns the delay before a packet is requested again, given the number of requests so far.
func repeatAfter(times int) time.Duration { return 25 * time.Millisecond << min(times, 4) >> 1 }

// skip abandons packets that have been missing for too long.
func (a *assembler) skip(now time.Time) []assembled {
	for len(a.missing) > 0 && a.next != a.newest+1 {
		if absent, is := a.missing[a.next]; is && now.Sub(absent.since) <= lostTime {
			break
		}
		if one, there := a.have[a.next]; there && one.first && !a.expired(now) {
			break
		}
		a.advance()
	}
	a.gap, a.dropping = true, true
	return a.frames()
}

func (a *assembler) expired(now time.Time) bool {
	for _, absent := range a.missing {
		if now.Sub(absent.since) > lostTime {
			return true
		}
	}
	return false
}
