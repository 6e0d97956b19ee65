package room

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/pion/interceptor"
	"github.com/pion/rtp"

	"cutroom/shared/testkit/alloctest"
)

func TestDescriptionsNeedLittleMemory(t *testing.T) {
	const head = "v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\n"
	const section = "m=video 9 UDP/TLS/RTP/SAVPF 96\r\n"
	repeated := func(line string, count int) string { return strings.Repeat(line, min(count, maxSignal/len(line))) }
	for name, text := range map[string]string{
		"attributes":          head + repeated("a=\n", maxSignal),
		"the most attributes": head + strings.Repeat(section+repeated("a=\n", 512), maxLines/512),
		"attributes in one":   head + section + repeated("a=\n", 512),
		"candidates":          head + section + repeated("a=candidate\n", maxSignal),
		"short attributes":    head + section + repeated("a=bcdef\n", maxLines-10),
		"sections":            head + repeated("m=a 0 a 0\n", maxSignal),
		"the most sections":   head + repeated("m=a 0 a 0\n", maxSections),
		"usual attributes":    head + section + repeated("a=ssrc:1 aaaaaaaaaa\n", maxLines-10),
		"codecs":              head + "m=video 9 RTP" + repeated(" 1", maxSignal) + "\n",
		"the most codecs":     head + strings.Repeat("m=video 9 RTP"+repeated(" 1", 96)+"\n", maxSections),
		"protocols":           head + "m=video 9 RTP" + repeated("/", maxSignal) + " 1\n",
		"times":               "v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\ns=-\r\n" + repeated("t=0 0\n", maxSignal),
		"repeats":             head + repeated("r=1 1 1\n", maxSignal),
		"offsets":             head + "r=1 1" + repeated(" 1", maxSignal) + "\n",
		"zones":               head + "z=" + repeated("0 0 ", maxSignal) + "\n",
		"bandwidths":          head + section + repeated("b=a:1\n", maxSignal),
		"emails":              "v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\ns=-\r\n" + repeated("e=\n", maxSignal),
		"connections":         head + section + repeated("c=IN IP4 0\n", maxSignal),
		"line ends":           head + repeated("\n", maxSignal),
	} {
		t.Run(name, func(t *testing.T) {
			alloctest.Check(t, len(text), func() {
				_, _ = readOffer(text)
			})
		})
	}
}

func TestReportsNeedLittleMemory(t *testing.T) {
	const size = 1200
	reports := map[string][]byte{}
	for kind := 192; kind <= 223; kind++ {
		for format := range 32 {
			for name, filler := range map[string]string{
				"zeros": "\x00", "ones": "\xff", "small": "\x00\x01", "runs": "\x3f\xff", "vectors": "\xd5\x55", "blocks": "\x01\x00\x00\x01",
			} {
				whole := bytes.Repeat([]byte(filler), size/len(filler))
				whole[0], whole[1] = 128|byte(format), byte(kind)
				binary.BigEndian.PutUint16(whole[2:], size/4-1)
				reports[fmt.Sprintf("%d/%d of %s", kind, format, name)] = whole
			}
			small := bytes.Repeat([]byte{128 | byte(format), byte(kind), 0, 0}, size/4)
			reports[fmt.Sprintf("empty ones of %d/%d", kind, format)] = small
		}
	}
	// This report covers 8,000 arrived packets with a single run-length chunk.
	reports["a run"] = []byte{
		128 | tellsTime, aboutTransport, 0, 5, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 31, 64, 0, 0, 0, 0, 0x3f, 255, 0, 0,
	}
	reports["runs"] = append([]byte{
		128 | tellsTime, aboutTransport, 1, 43, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 31, 64, 0, 0, 0, 0,
	}, bytes.Repeat([]byte{0x20, 8}, (size-20)/2)...)
	for name, report := range reports {
		took := alloctest.Least(func() {
			done := false
			reader := newIntake(func() {}).BindRTCPReader(interceptor.RTCPReaderFunc(
				func(b []byte, a interceptor.Attributes) (int, interceptor.Attributes, error) {
					if done {
						return 0, nil, io.EOF
					}
					done = true
					return copy(b, report), a, nil
				}))
			_, _, _ = reader.Read(make([]byte, 1500), nil)
		}, 0)
		if took > 20*len(report)+4096 {
			t.Errorf("%s: %d bytes take %d of memory", name, len(report), took)
		}
	}
}

func TestPacketsNeedLittleMemory(t *testing.T) {
	const count, overhead = 20_000, 50 // overhead of IP, UDP, RTP and SRTP per packet
	for name, number := range map[string]func(i int) (sequence uint16, payload []byte){
		"empty ones":  func(i int) (uint16, []byte) { return uint16(i), nil },
		"one byte":    func(i int) (uint16, []byte) { return uint16(i), []byte{0x10} },
		"every other": func(i int) (uint16, []byte) { return uint16(2 * i), []byte{0x10, 0} },
		"far ahead":   func(i int) (uint16, []byte) { return uint16(maxGap * i), []byte{0x10, 0} },
		"back and forth": func(i int) (uint16, []byte) {
			return uint16(i/2 + i%2*maxGap), []byte{0x10, 0}
		},
		"no end": func(i int) (uint16, []byte) { return uint16(i), []byte{0, 0} },
	} {
		t.Run(name, func(t *testing.T) {
			alloctest.Check(t, count*overhead, func() {
				a := newAssembler()
				a.push(&rtp.Packet{Payload: []byte{0x10, 0}}, time.Now())
				for i := 1; i < count; i++ {
					sequence, payload := number(i)
					p := rtp.Packet{Payload: payload}
					p.SequenceNumber = sequence
					a.push(&p, time.Now())
					if len(a.have) > maxHeld || len(a.missing) > maxHeld {
						t.Fatalf("%d packets are kept, and %d waited for", len(a.have), len(a.missing))
					}
				}
			})
		})
	}
}
