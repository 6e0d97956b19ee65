package room

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/pion/rtp"
	"github.com/pion/rtp/codecs"
)

// packetsOf returns the packets of several frames. The sequence numbers start at the given one.
func packetsOf(frames int, first uint16) (all []*rtp.Packet) {
	number := first
	for frame := range frames {
		data := bytes.Repeat([]byte{byte(frame)}, 3000)
		binary.BigEndian.PutUint32(data, uint32(frame))
		payloads := (&codecs.VP8Payloader{}).Payload(1000, data)
		for i, payload := range payloads {
			all = append(all, &rtp.Packet{Payload: payload, Header: rtp.Header{
				SequenceNumber: number, Timestamp: uint32(frame) * 3600, Marker: i == len(payloads)-1,
			}})
			number++
		}
	}
	return all
}

func numberOf(frame assembled) int { return int(binary.BigEndian.Uint32(frame.data)) }

// Packets are duplicated too, and their sequence numbers wrap around.
func TestReorderedPacketsMakeSameFrames(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	packets := packetsOf(50, 65500)
	var sent []*rtp.Packet
	for at := 0; at < len(packets); at += 6 { // the very first packet stays first
		batch := append([]*rtp.Packet{}, packets[at:min(at+6, len(packets))]...)
		batch = append(batch, batch...)
		random.Shuffle(len(batch), func(i, j int) {
			if at > 0 || i > 0 && j > 0 {
				batch[i], batch[j] = batch[j], batch[i]
			}
		})
		sent = append(sent, batch...)
	}
	a := newAssembler()
	var whole []assembled
	for _, packet := range sent {
		whole = append(whole, a.push(packet, time.Now())...)
	}
	for i, frame := range whole {
		if numberOf(frame) != i || frame.gap || len(frame.data) != 3000 || frame.timestamp != uint32(i)*3600 {
			t.Fatalf("frame %d is %d of %d bytes at %d, after a gap: %t", i, numberOf(frame), len(frame.data),
				frame.timestamp, frame.gap)
		}
	}
	if len(whole) != 50 || a.waits() || len(a.have) > 0 {
		t.Errorf("%d frames, %d packets are kept, %d missing", len(whole), len(a.have), len(a.missing))
	}
}

// After a few requests, the assembler gives up on the packet, and later frames report the loss.
func TestLostPacketsAreRequested(t *testing.T) {
	packets := packetsOf(4, 10)
	const lost = 5 // belongs to the second frame
	a := newAssembler()
	now := time.Now()
	var whole []assembled
	for i, packet := range packets {
		if i != lost {
			whole = append(whole, a.push(packet, now)...)
		}
	}
	if len(whole) != 1 || !a.waits() {
		t.Fatalf("%d frames before the missing packet", len(whole))
	}
	if numbers, given, _ := a.ask(now); len(numbers) > 0 || given {
		t.Errorf("%v is requested immediately, although it may be late", numbers)
	}
	asked := 0
	for since := reorderTime; since < lostTime; since += askEvery {
		numbers, given, _ := a.ask(now.Add(since))
		if given || len(numbers) > 0 && (len(numbers) != 1 || numbers[0] != 10+lost) {
			t.Fatalf("after %v %v is requested, abandoned: %t", since, numbers, given)
		}
		asked += len(numbers)
	}
	if asked < 3 || asked > 8 {
		t.Errorf("the packet was requested %d times", asked)
	}
	_, given, rest := a.ask(now.Add(lostTime + time.Second))
	if !given || len(rest) != 2 || numberOf(rest[0]) != 2 || !rest[0].gap || rest[1].gap || a.waits() {
		t.Errorf("abandoned: %t, then %d frames, waits: %t", given, len(rest), a.waits())
	}
}

// maxEncoded also limits the packets' headers.
func TestUnfinishedFrameUsesLittleMemory(t *testing.T) {
	a, most := newAssembler(), 0
	for number := range uint16(2 * maxHeld) {
		packet := &rtp.Packet{Payload: bytes.Repeat([]byte{16}, 1000), Header: rtp.Header{SequenceNumber: number}}
		_ = packet.SetExtensionWithProfile(1, make([]byte, 255), rtp.ExtensionProfileTwoByte)
		a.push(packet, time.Now())
		most = max(most, len(a.have)*packet.MarshalSize())
	}
	if most > maxEncoded || most < maxEncoded*9/10 {
		t.Errorf("%d bytes are held, the limit is %d", most, maxEncoded)
	}
}

func FuzzAssembler(f *testing.F) {
	f.Add([]byte{0, 1, 16, 0, 2, 144, 1, 2, 3})
	f.Add(bytes.Repeat([]byte{1, 0, 16}, 100))
	// In this seed, one of 252 packets arrives.
	f.Add(append([]byte{0, 1, 16}, bytes.Repeat([]byte{255, 1, 16}, 60)...))
	f.Fuzz(func(t *testing.T, input []byte) {
		a := newAssembler()
		now := time.Now()
		number := uint16(0)
		for len(input) >= 3 {
			number += uint16(input[0]) - 3
			size := min(int(input[1])%32, len(input)-2)
			packet := &rtp.Packet{Payload: input[2 : 2+size], Header: rtp.Header{
				SequenceNumber: number, Marker: input[1]&128 != 0,
			}}
			input = input[2+size:]
			now = now.Add(10 * time.Millisecond)
			a.push(packet, now)
			a.ask(now)
			if len(a.have) > maxHeld || len(a.missing) > maxHeld {
				t.Fatalf("%d packets are kept, %d missing", len(a.have), len(a.missing))
			}
		}
	})
}
