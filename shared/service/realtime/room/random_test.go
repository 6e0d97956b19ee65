package room

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	mathrand "math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/pion/interceptor"
	"github.com/pion/rtcp"
	"github.com/pion/rtp"

	"cutroom/shared/service/realtime/livekit"
	"cutroom/shared/testkit/await"
)

func pick[T any](random *mathrand.Rand, from ...T) T { return from[random.IntN(len(from))] }

// Whatever a connected client describes and sends, the library's goroutines neither panic nor wait forever.
func TestRandomDescriptionsAndPacketsAreHarmless(t *testing.T) {
	w := newWorld(t, nil)
	for round := range 12 {
		random := mathrand.New(mathrand.NewPCG(1, uint64(round)))
		r, _ := w.mirror()
		c := w.join(r, livekit.Version1, true)
		c.Sees(1)
		r.mu.Lock()
		p := slices.Collect(maps.Values(r.participants))[0]
		r.mu.Unlock()
		usual, writer := p.own.RemoteDescription().SDP, *c.Packets.Load()
		for range 12 {
			var offer strings.Builder
			section, changed := 0, 1+random.IntN(strings.Count(usual, "m="))
			for line := range strings.Lines(usual) {
				if strings.HasPrefix(line, "m=") {
					section++
				}
				source := 10*pick(random, changed, changed, changed, 1) + pick(random, 0, 1)
				switch {
				case section != changed, !strings.HasPrefix(line, "a=ssrc") && !strings.HasPrefix(line, "a=mid:"):
				case strings.HasPrefix(line, "a=mid:"):
					line += pick(random, "", "a=rid:f send\r\n", fmt.Sprintf("a=ssrc:%d msid:a b\r\n", source))
				default:
					line = pick(random, "", line, fmt.Sprintf("a=ssrc-group:FID %d %d\r\n", source, source+1))
				}
				offer.WriteString(line)
			}
			read, err := readOffer(offer.String())
			if err == nil {
				p.mu.Lock()
				_, err = p.own.answer(read, p.addTracks)
				p.mu.Unlock()
			}
			if err != nil && !errors.Is(err, errOffer) {
				t.Fatal(err)
			}
			for range random.IntN(20) {
				header := &rtp.Header{
					Version: 2, PayloadType: uint8(96 + random.IntN(2)), SSRC: uint32(10*random.IntN(5) + random.IntN(2)), SequenceNumber: uint16(random.IntN(40)),
				}
				for id := range uint8(3) {
					_ = header.SetExtension(1+id, []byte(pick(random, "0", "1", "2", "3", "f", "f")))
				}
				_, _ = writer.Write(header, make([]byte, random.IntN(1100)), interceptor.Attributes{})
			}
			_ = c.Own.WriteRTCP([]rtcp.Packet{&rtcp.PictureLossIndication{MediaSSRC: uint32(10*random.IntN(5) + random.IntN(2))}})
		}
		r.Close(livekit.ReasonRoomDeleted)
	}
	r, _ := w.mirror()
	last := w.join(r, livekit.Version1, true)
	last.Sees(5)
	last.Close()
	r.Close(livekit.ReasonRoomDeleted)
	await.Becomes(t, "the library's waiting readers", 0, func() int {
		stacks := make([]byte, 16<<20)
		return bytes.Count(stacks[:runtime.Stack(stacks, true)], []byte(".NextStream("))
	})
}
