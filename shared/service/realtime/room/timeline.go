package room

import "time"

// timeline maps the RTP timestamps and sequence numbers of successive sources to a single stream.
type timeline struct {
	rate uint32

	begun      bool
	shift      uint32 // added to the source's timestamps
	numbers    uint16 // added to the source's sequence numbers
	last       uint32
	lastNumber uint16
	at         time.Time
}

// turn switches to another source, given the timestamp and number of its first packet.
func (t *timeline) turn(timestamp uint32, number uint16, now time.Time) {
	if t.begun {
		passed := uint32(now.Sub(t.at).Seconds() * float64(t.rate))
		t.shift = t.last + max(passed, 1) - timestamp
		t.numbers = t.lastNumber + 1 - number
	}
	t.begun = true
}

// place returns a packet's timestamp and sequence number in the stream.
func (t *timeline) place(timestamp uint32, number uint16, now time.Time) (uint32, uint16) {
	t.last, t.lastNumber, t.at = timestamp+t.shift, number+t.numbers, now
	return t.last, t.lastNumber
}
