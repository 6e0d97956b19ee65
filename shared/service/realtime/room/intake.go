package room

import (
	"bytes"
	"encoding/binary"
	"io"
	"maps"
	"math"
	"math/bits"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pion/interceptor"
	"github.com/pion/rtp"
	"github.com/pion/sdp/v3"
	"github.com/pion/transport/v5/packetio"
	"golang.org/x/time/rate"
)

const (
	// maxStreams limits a peer's packet and report streams. A client with a camera and a microphone has 14, half of
	// them for reports. maxOpened limits the streams that a peer opens in its lifetime, because the library keeps
	// some memory for each. A client that restarts its camera opens up to six.
	maxStreams, maxReported, maxOpened = 256, 32, 1024
	// maxUnread limits the unread bytes of a stream, because the stream may have no reader. The limit is maxFew for
	// reports, and for all streams while their total exceeds maxAllUnread.
	maxUnread, maxAllUnread, maxFew = 128 << 10, 512 << 10, 4 << 10
	// maxEarly limits the bytes of media and of reports that arrive before the first stream of the kind, because a client
	// that wants only data never has streams.
	maxEarly = 64 << 10
	// settleTime is how long after the handshake media and reports are dropped. Until the library has started to accept
	// streams, a packet of a new stream makes Close wait forever, and the library would queue megabytes.
	settleTime = 100 * time.Millisecond
	// maxHandshake is the maximum size of a client's handshake in bytes. Most handshakes take 3 KB, plus repetitions
	// after losses.
	maxHandshake = 32 << 10
	// maxCandidates is the number of addresses from which a client may connect. Each second,
	// another address is allowed.
	maxCandidates = 64
	// feedbackRate and feedbackBurst limit the number of packets covered by a client's reports. The
	// server sends a few hundred packets per second.
	feedbackRate, feedbackBurst = 20_000, 8192
	// checkRate and checkBurst limit the connectivity checks per second. Browsers send 20 at first.
	checkRate, checkBurst = 30, 500
	// reportRate and reportBurst limit the bytes of reports. Each packet counts as reportHead bytes more than its
	// size. Browsers send about 20 packets of 100 bytes per second.
	reportRate, reportBurst, reportHead = 40_000, 80_000, 200
	// deliveryRate and deliveryBurst limit the reports that reach streams. A browser's 20 packets with three reports
	// each reach two streams.
	deliveryRate, deliveryBurst = 500, 1000
	// mediaRate limits the media packets per second. A camera at 5 Mbit/s sends 600. unwantedRate is the
	// limit for clients that may only watch.
	mediaRate, unwantedRate = 3000, 50
	// gapRate and gapBurst limit the missing sequence numbers between a client's packets, because
	// the library does work for each. A client that restarts a stream skips up to 32,766.
	gapRate, gapBurst = 20_000, 1 << 16
	// maxPadding is the maximum number of padding-only packets at the start of streams.
	maxPadding = 2000
)

// intake limits the memory and work that a client can cause in the library. The library allocates a
// buffer for every stream that a client invents, and looks up every packet in a report.
type intake struct {
	interceptor.NoOp

	mu      sync.Mutex
	streams map[*stream]bool
	// opened counts all streams ever opened. reported counts the open report streams.
	opened, reported int
	// unread counts the unread bytes of all streams.
	unread  atomic.Int64
	sources map[uint32]bool // sources of reports
	// owners maps the SSRC of each stream of the connection to the mid of its section, or to "" if the client
	// has not declared the stream.
	owners map[uint32]string
	// declared contains those streams of owners that the client's latest description declares.
	declared map[uint32]string
	// layered has an entry for each section that has had a stream. The entry is true if the stream has a rid.
	layered map[string]bool
	// turns contains a lock for the readers of each stream, by SSRC.
	turns  map[uint32]*sync.Mutex
	shared newest
	// earlyMedia and earlyReports count the bytes before the first stream. They are negative after it.
	earlyMedia, earlyReports atomic.Int64
	// connected is when the handshake ended, or nil.
	connected atomic.Pointer[time.Time]
	// handshake counts the bytes of handshake records.
	handshake          atomic.Int64
	padding            atomic.Int64
	candidates         *rate.Limiter
	feedback           *rate.Limiter
	reports, delivered *rate.Limiter
	media, gaps        *rate.Limiter
	checks             *rate.Limiter
	// client is nil until the client has sent a session description.
	client atomic.Pointer[iceUser]
	// overflow is called once if the client far exceeds normal use.
	overflow func()
}

func newIntake(overflow func()) *intake {
	return &intake{
		candidates: rate.NewLimiter(1, maxCandidates), feedback: rate.NewLimiter(feedbackRate, feedbackBurst),
		reports: rate.NewLimiter(reportRate, reportBurst), delivered: rate.NewLimiter(deliveryRate, deliveryBurst),
		media: rate.NewLimiter(mediaRate, mediaRate), gaps: rate.NewLimiter(gapRate, gapBurst),
		checks:   rate.NewLimiter(checkRate, checkBurst),
		overflow: sync.OnceFunc(overflow), streams: map[*stream]bool{}, sources: map[uint32]bool{}, owners: map[uint32]string{},
		turns: map[uint32]*sync.Mutex{}, layered: map[string]bool{},
	}
}

// buffer returns a stream's packet buffer to the library.
func (i *intake) buffer(kind packetio.BufferPacketType, source uint32) io.ReadWriteCloser {
	s := &stream{of: i, reports: kind == packetio.RTCPBufferPacket, packets: packetio.NewBuffer()}
	s.started = s.reports
	s.packets.SetLimitSize(maxUnread)
	if s.reports {
		s.packets.SetLimitSize(maxFew)
	}
	i.mu.Lock()
	i.streams[s] = true
	i.opened++
	if s.reports {
		i.reported++
	} else if _, known := i.declared[source]; !known {
		i.owners[source] = ""
	}
	i.early(s.reports).Store(math.MinInt64)
	excess := len(i.streams) > maxStreams || i.reported > maxReported || i.opened > maxOpened
	i.mu.Unlock()
	if excess {
		_ = s.Close()
		go i.overflow()
	}
	return s
}

// claim reports whether the description keeps each stream as it was. An SSRC must be new or have belonged to the same
// section before. A section that has named a stream by its rid or SSRC must still do so. Otherwise, the library would
// panic, because it would read one stream twice, or one that has not started.
func (i *intake) claim(d description) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	named := func(mid string, byRID bool) bool {
		if _, known := i.layered[mid]; !known {
			i.layered[mid] = byRID
		}
		return i.layered[mid] == byRID
	}
	for mid := range d.layered {
		if !named(mid, true) {
			return false
		}
	}
	for source, mid := range d.sources {
		if owner, known := i.owners[source]; known && owner != mid || !named(mid, false) {
			return false
		}
		i.owners[source] = mid
	}
	i.declared = d.sources
	return len(i.owners) <= maxOpened
}

// drops reports whether a packet (RFC 7983, section 7) must be dropped. It drops excess connectivity checks, early
// media, excess handshake records (whose messages the library would keep), and packets of other kinds, such as data.
func (i *intake) drops(packet []byte) bool {
	switch {
	case len(packet) < 2:
	case packet[0] < 4:
		return !i.checks.Allow()
	case packet[0] >= 128 && packet[0] <= 191:
		connected := i.connected.Load()
		early := i.early(isReportKind(packet[1]))
		return connected == nil || time.Since(*connected) < settleTime ||
			early.Load() >= 0 && early.Add(int64(len(packet))) > maxEarly || !i.knowsSource(packet)
	case packet[0] >= 20 && packet[0] <= 63:
		return !i.isHandshake(packet) || i.handshake.Add(int64(len(packet))) > maxHandshake
	}
	return true
}

func (i *intake) early(reports bool) *atomic.Int64 {
	if reports {
		return &i.earlyReports
	}
	return &i.earlyMedia
}

// isReportKind reports whether a packet with this second byte is a report (RFC 5761, section 4).
func isReportKind(kind byte) bool { return kind >= 192 && kind <= 223 }

// knowsSource reports whether a media packet or report may pass. It limits the number of packets per second. It also
// limits the number of report sources, because the library keeps hundreds of bytes for each. The library keeps a
// media source only once one of its packets has been authenticated (see buffer). The rate of reports is lower,
// because a 60-byte report can cost milliseconds and megabytes.
func (i *intake) knowsSource(packet []byte) bool {
	const ofReport = 4 // RFC 3550, section 6.4
	switch {
	case !isReportKind(packet[1]):
		return i.media.Allow()
	case len(packet) < ofReport+4 || !i.reports.AllowN(time.Now(), reportHead+len(packet)):
		return false
	}
	source := binary.BigEndian.Uint32(packet[ofReport:])
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.sources[source] && len(i.sources) < maxStreams {
		i.sources[source] = true
	}
	return i.sources[source]
}

// isHandshake reports whether a packet has only handshake records and alerts (RFC 6347, section 4.1). It returns false
// if the library would answer a record from an unproven sender with a fatal alert, because then a forged packet could
// end the connection.
func (i *intake) isHandshake(packet []byte) bool {
	const head, changeCipher, alert, handshaking = 13, 20, 21, 22
	ended := i.connected.Load() != nil
	for len(packet) > 0 {
		if len(packet) < head {
			return false
		}
		size := head + int(binary.BigEndian.Uint16(packet[head-2:]))
		if size > len(packet) {
			return false
		}
		plain := packet[3] == 0 && packet[4] == 0 // epoch 0
		switch {
		case packet[0] == changeCipher && plain && size == head+1 && packet[head] == 1:
		case packet[0] == alert && (!plain || !ended):
		case packet[0] == handshaking:
		default:
			return false
		}
		packet = packet[size:]
	}
	return true
}

type stream struct {
	of *intake
	// started means that a packet with more than padding has arrived, or that the stream contains reports.
	reports, started bool

	mu sync.Mutex
	// packets is set to nil when the stream is closed, because the library may keep the stream in memory.
	packets *packetio.Buffer
	unread  int
}

// Write drops excess padding at the start of a stream. If the stream is undeclared, the library
// would keep every such packet. It also drops excess and unknown reports, because the library may write each report of
// a packet to all streams.
func (s *stream) Write(packet []byte) (int, error) {
	if s.reports && (len(packet) < 2 || !isKnown(packet[1]) || !s.of.delivered.Allow()) {
		return len(packet), nil
	}
	if s.started = s.started || !isPadding(packet); !s.started && s.of.padding.Add(1) > maxPadding {
		return len(packet), nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.packets == nil:
		return 0, io.ErrClosedPipe
	case s.unread+len(packet) > maxFew && s.of.unread.Load() > maxAllUnread:
		return 0, packetio.ErrFull
	}
	n, err := s.packets.Write(packet, nil)
	s.count(n)
	return n, err
}

// count adds to the number of unread bytes. The lock must be held.
func (s *stream) count(bytes int) {
	s.unread += bytes
	s.of.unread.Add(int64(bytes))
}

func (s *stream) Read(b []byte) (int, error) {
	s.mu.Lock()
	packets := s.packets
	s.mu.Unlock()
	if packets == nil {
		return 0, io.EOF
	}
	n, _, err := packets.Read(b, nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.packets != nil {
		s.count(-n)
	}
	return n, err
}

// isPadding reports whether an RTP packet contains only padding (RFC 3550, section 5.1).
func isPadding(packet []byte) bool {
	const head, padded, extended, sources = 12, 0x20, 0x10, 0x0f
	if len(packet) <= head || packet[0]&padded == 0 {
		return false
	}
	payload := head + 4*int(packet[0]&sources)
	if packet[0]&extended != 0 && len(packet) >= payload+4 {
		payload += 4 + 4*int(binary.BigEndian.Uint16(packet[payload+2:]))
	}
	return payload+int(packet[len(packet)-1]) >= len(packet)
}

// SetReadDeadline is called by the library.
func (s *stream) SetReadDeadline(at time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.packets == nil {
		return io.ErrClosedPipe
	}
	return s.packets.SetReadDeadline(at)
}

func (s *stream) Close() error {
	s.mu.Lock()
	packets := s.packets
	s.packets = nil
	s.count(-s.unread)
	s.mu.Unlock()
	if packets == nil {
		return nil
	}
	s.of.mu.Lock()
	delete(s.of.streams, s)
	if s.reports {
		s.of.reported--
	}
	s.of.mu.Unlock()
	return packets.Close()
}

// call reports whether the client may connect from another address.
func (i *intake) call(net.IP) bool { return i.candidates.Allow() }

func (i *intake) NewInterceptor(string) (interceptor.Interceptor, error) { return i, nil }

// BindRemoteStream drops packets that skip too many of a stream's numbers, or of the numbers that all of the client's
// streams share. Only one reader of an SSRC reads at a time. Otherwise, a client could make the library read a stream
// twice at once, which would panic, or leave a reader waiting forever after the end.
func (i *intake) BindRemoteStream(info *interceptor.StreamInfo, reader interceptor.RTPReader) interceptor.RTPReader {
	own, shared := &newest{}, extensionID(info, sdp.TransportCCURI)
	i.mu.Lock()
	turn := i.turns[info.SSRC]
	if turn == nil {
		turn = &sync.Mutex{}
		i.turns[info.SSRC] = turn
	}
	i.mu.Unlock()
	return interceptor.RTPReaderFunc(func(b []byte, a interceptor.Attributes) (int, interceptor.Attributes, error) {
		for {
			turn.Lock()
			n, _, err := reader.Read(b, a)
			turn.Unlock()
			if err != nil {
				return n, a, err
			}
			attributes := interceptor.Attributes{} // attributes cache the header for all readers
			maps.Copy(attributes, a)
			if header, err := attributes.GetRTPHeader(b[:n]); err == nil && i.follows(header, own, shared) {
				return n, attributes, nil
			}
		}
	})
}

// follows reports whether a packet may pass. own is the newest number of the packet's stream. shared is the id of the
// header extension with the number that all streams share, or 0.
func (i *intake) follows(header *rtp.Header, own *newest, shared uint8) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	missing := max(own.ahead(header.SequenceNumber)-1, 0)
	extension := header.GetExtension(shared)
	has := shared != 0 && len(extension) >= 2
	if has {
		if ahead := i.shared.ahead(binary.BigEndian.Uint16(extension)); ahead > 0 {
			missing += ahead - 1
		} else {
			missing -= ahead
		}
	}
	if !i.gaps.AllowN(time.Now(), missing) {
		return false
	}
	own.take(header.SequenceNumber)
	if has {
		i.shared.take(binary.BigEndian.Uint16(extension))
	}
	return true
}

// newest is the newest number of a sequence whose numbers wrap around.
type newest struct {
	number uint16
	begun  bool
}

// ahead returns how far a number is ahead of the newest number. It is negative for older numbers.
func (n *newest) ahead(number uint16) int {
	if !n.begun {
		return 0
	}
	return int(int16(number - n.number))
}

func (n *newest) take(number uint16) {
	if !n.begun || n.ahead(number) > 0 {
		n.number, n.begun = number, true
	}
}

// BindRTCPReader drops reports that cover too many packets or are malformed.
func (i *intake) BindRTCPReader(reader interceptor.RTCPReader) interceptor.RTCPReader {
	return interceptor.RTCPReaderFunc(func(b []byte, a interceptor.Attributes) (int, interceptor.Attributes, error) {
		for {
			n, attributes, err := reader.Read(b, a)
			if err != nil {
				return n, attributes, err
			}
			if attributes == nil {
				attributes = interceptor.Attributes{}
			}
			n = copy(b, known(b[:n]))
			if i.feedback.AllowN(time.Now(), coveredPackets(b[:n])) && isReport(bytes.Clone(b[:n]), attributes) {
				return n, attributes, nil
			}
		}
	})
}

// The report type and formats that cover or request packets (RFC 4585, section 6.2.1, and
// draft-holmer-rmcat-transport-wide-cc-extensions-01, section 3.1).
const (
	aboutTransport       = 205
	asksAgain, tellsTime = 1, 15
)

// The report types that the server reads (RFC 3550, section 12.1, and RFC 4585).
const senderReport, receiverReport, aboutPictures = 200, 201, 206

func isKnown(kind byte) bool {
	return kind == senderReport || kind == receiverReport || kind == aboutTransport || kind == aboutPictures
}

// known removes reports of unknown types and incomplete time reports. The library allocates 30
// bytes or more for each announced element before it checks that the element is there.
func known(reports []byte) []byte {
	kept := reports[:0]
	for len(reports) >= 4 {
		size := min(4+4*int(binary.BigEndian.Uint16(reports[2:])), len(reports))
		kind, report := reports[1], reports[:size]
		reports = reports[size:]
		if !isKnown(kind) {
			continue
		}
		if kind == aboutTransport && report[0]&31 == tellsTime && !hasTimes(report) {
			continue
		}
		kept = append(kept, report...)
	}
	return kept
}

// hasTimes reports whether a time report contains at least one byte for each announced time.
func hasTimes(report []byte) bool {
	const head, run, vectorOfBits, vectorOfPairs = 20, 0, 2, 3
	if len(report) < head {
		return false
	}
	times, packets := 0, int(binary.BigEndian.Uint16(report[14:]))
	for report = report[head:]; packets > 0; report = report[2:] {
		if len(report) < 2 {
			return false
		}
		switch chunk := binary.BigEndian.Uint16(report); chunk >> 14 {
		case vectorOfBits:
			times += bits.OnesCount16(chunk & 0x3fff)
			packets -= 14
		case vectorOfPairs: // two bits per packet, which are 0 if it was lost
			times += bits.OnesCount16((chunk | chunk>>1) & 0x1555)
			packets -= 7
		default: // a run of identical symbols
			length := min(int(chunk&0x1fff), packets)
			if chunk>>13 != run {
				times += length
			}
			packets -= length
		}
	}
	return times <= len(report)
}

// coveredPackets returns how many packets the reports cover or request, according to their headers.
func coveredPackets(reports []byte) (packets int) {
	for len(reports) >= 4 {
		packets++
		size := min(4+4*int(binary.BigEndian.Uint16(reports[2:])), len(reports))
		kind, format := reports[1], reports[0]&31
		switch {
		case kind != aboutTransport:
		case format == asksAgain:
			packets += 17 * size / 4
		case format == tellsTime && size >= 16:
			packets += int(binary.BigEndian.Uint16(reports[14:]))
		}
		reports = reports[size:]
	}
	return packets
}

// isReport reports whether the reports are valid. The attributes cache the parsed reports for all readers.
func isReport(reports []byte, attributes interceptor.Attributes) bool {
	_, err := attributes.GetRTCPPackets(reports)
	return err == nil
}
