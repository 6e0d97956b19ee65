package room

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/pion/interceptor"
	"github.com/pion/rtcp"
	"github.com/pion/rtp"
	"github.com/pion/sdp/v3"
	"github.com/pion/stun/v4"
	"github.com/pion/transport/v5/packetio"
	"github.com/pion/webrtc/v4"
	"golang.org/x/time/rate"
	"google.golang.org/protobuf/encoding/protowire"

	"cutroom/shared/service/realtime/livekit"
	"cutroom/shared/service/realtime/livekit/livekittest"
	"cutroom/shared/testkit/await"
)

func offers(c *livekittest.Client, change func(offer string) string) {
	c.Change = change
	c.Say(&livekit.SignalRequest{Offer: c.Offer(9, false)})
	c.Change = nil
}

// adding returns a function that appends lines to an offer's last section.
func adding(count int, line string) func(string) string {
	return func(offer string) string {
		var lines strings.Builder
		for i := range count {
			fmt.Fprintf(&lines, line+"\r\n", i)
		}
		return offer + lines.String()
	}
}

// Invalid offers disconnect the participant. Unusual valid offers are answered.
func TestInvalidOfferDisconnectsParticipant(t *testing.T) {
	const section = "m=video 9 UDP/TLS/RTP/SAVPF 96\r\nc=IN IP4 0.0.0.0\r\na=mid:m%d\r\na=recvonly\r\na=rtpmap:96 VP8/90000"
	w := newWorld(t, nil)
	for name, of := range map[string]struct {
		change  func(string) string
		refused bool
	}{
		"10,000 lines":   {adding(10_000, "a=x:%d"), true},
		"4,000 sections": {adding(2_000, section), true},
		"many formats":   {adding(50, strings.Replace(section, " 96", strings.Repeat(" 96", 45), 1)+strings.Repeat("\r\na=x:y", 60)), true},
		"10,000 cameras": {adding(10_000, "a=ssrc:%d cname:x"), true},
		"10,000 sizes":   {adding(10_000, "a=rid:%d send"), true},
		"20,000 codecs": {func(offer string) string {
			return strings.Replace(offer, "UDP/TLS/RTP/SAVPF 96", "UDP/TLS/RTP/SAVPF"+strings.Repeat(" 96", 20_000), 1)
		}, true},
		"nothing":        {func(string) string { return "" }, true},
		"no description": {func(string) string { return "v=0\r\n\x00" }, true},
		"no fingerprint": {func(offer string) string {
			return regexp.MustCompile(`a=fingerprint:.*\r\n`).ReplaceAllString(offer, "")
		}, false},
		"another fingerprint": {func(offer string) string {
			return regexp.MustCompile(`a=fingerprint:sha-256 ..`).ReplaceAllString(offer, "a=fingerprint:sha-256 00")
		}, false},
		"3,000 candidates":   {adding(3_000, "a=candidate:1 1 udp 2130706431 169.254.169.254 %d typ host"), false},
		"what nobody reads":  {adding(400, "a=x:%d"), false},
		"a section too many": {adding(1, section), false},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := w.mirror()
			c := livekittest.Join(t, w.as(r, livekit.Version1, false))
			offers(c, of.change)
			if !of.refused {
				livekittest.Await(c, "the offer is answered", c.Answered)
			} else if leave := c.Left(); leave.Reason != livekit.ReasonJoinFailure {
				t.Errorf("the server ends with %v", leave)
			}
		})
	}
	r, _ := w.mirror()
	w.join(r, livekit.Version1, true).Sees(10)
}

// A token that joins in a loop is rejected, and locks out neither others nor the session's client.
func TestJoinsPerTokenAreLimited(t *testing.T) {
	w := newWorld(t, nil)
	r, _ := w.mirror()
	path := "/rtc?access_token="
	dial := func(token string) int {
		socket, response, err := websocket.Dial(t.Context(), w.http.URL+Path+r.Name()+path+token, nil)
		if err != nil && response == nil {
			t.Fatal(err)
		}
		if err == nil {
			socket.CloseNow()
		} else if response.StatusCode == 429 && response.Header.Get("Retry-After") == "" {
			t.Error("429 without Retry-After")
		}
		return response.StatusCode
	}
	hostile, rejected := w.token(r, false), 0
	for range 4 * maxViewers {
		if dial(hostile) == 429 {
			rejected++
		}
	}
	if rejected < 2*maxViewers {
		t.Errorf("%d of %d joins were rejected", rejected, 4*maxViewers)
	}
	for range maxViewers / 2 {
		if status := dial(w.token(r, false)); status == 429 {
			t.Error("another viewer is rejected")
		}
	}
	for range 4 * maxViewers { // other viewers use up the room's joins
		dial(w.token(r, false))
	}
	path = "/rtc/v1?access_token="
	if status := dial(w.token(r, false) + "&join_request=malformed"); status != 429 {
		t.Errorf("a request that should not have been read gets %d", status)
	}
	if status := dial(w.token(r, true)); status == 429 {
		t.Error("the session's client is rejected")
	}
}

// The server ignores other addresses in the client's descriptions and in later candidates.
func TestServerContactsNoOtherAddress(t *testing.T) {
	w := newWorld(t, nil)
	r, _ := w.mirror()
	third, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer third.Close()
	calls, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer calls.Close()
	udp := fmt.Sprintf("candidate:1 1 udp 2130706431 127.0.0.1 %d typ host", third.LocalAddr().(*net.UDPAddr).Port)
	tcp := fmt.Sprintf("candidate:2 1 tcp 2130706431 127.0.0.1 %d typ host tcptype passive",
		calls.Addr().(*net.TCPAddr).Port)
	named := "a=" + udp + "\r\na=" + tcp + "\r\na=remote-candidates:1 127.0.0.1 " +
		fmt.Sprint(third.LocalAddr().(*net.UDPAddr).Port) + "\r\n"
	config := w.as(r, livekit.Version1, true)
	config.Change = func(offer string) string {
		return strings.Replace(offer, "t=0 0\r\n", "t=0 0\r\na=ice-lite\r\n"+named, 1) + named
	}
	c := livekittest.Join(t, config)
	for _, candidate := range []string{udp, tcp} {
		// Field 3 of a SignalRequest is a TrickleRequest, whose field 1 is a candidate.
		trickle := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType),
			fmt.Sprintf(`{"candidate":%q,"sdpMid":"0","sdpMLineIndex":0}`, candidate))
		c.Write(protowire.AppendBytes(protowire.AppendTag(nil, 3, protowire.BytesType), trickle))
	}
	// Wait until an ordinary client has seen frames, which takes longer than connecting does.
	w.join(r, livekit.Version1, false)
	other, _ := w.mirror()
	w.join(other, livekit.Version1, true).Sees(50)
	_ = third.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
	if n, from, err := third.ReadFrom(make([]byte, 1500)); err == nil {
		t.Errorf("%d bytes came from %v", n, from)
	}
	_ = calls.(*net.TCPListener).SetDeadline(time.Now().Add(10 * time.Millisecond))
	if conn, err := calls.Accept(); err == nil {
		conn.Close()
		t.Error("the server connected over TCP")
	}
}

func credentials(description string) (name, password string) {
	find := func(key string) string {
		return regexp.MustCompile(`a=` + key + `:(\S+)`).FindStringSubmatch(description)[1]
	}
	return find("ice-ufrag"), find("ice-pwd")
}

// peer returns the name and the password with which the client sends its binding requests.
func (w *world) peer(c *livekittest.Client) (name, password string) {
	theirs, password := credentials(c.Own.RemoteDescription().SDP)
	mine, _ := credentials(c.Own.LocalDescription().SDP)
	return theirs + ":" + mine, password
}

// dial connects to the media port until the test ends.
func (w *world) dial(network string) net.Conn {
	w.Helper()
	conn, err := net.Dial(network, w.config.Ports.Address())
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { conn.Close() })
	return conn
}

func binding(t *testing.T, name, password string) []byte {
	t.Helper()
	setters := []stun.Setter{stun.TransactionID, stun.BindingRequest}
	if name != "" {
		setters = append(setters, stun.NewUsername(name))
	}
	if password != "" {
		setters = append(setters, stun.NewShortTermIntegrity(password))
	}
	message, err := stun.Build(append(setters, stun.Fingerprint)...)
	if err != nil {
		t.Fatal(err)
	}
	return message.Raw
}

// The UDP port does not reply to strangers, so it neither amplifies traffic nor reveals that it is open.
func TestUnknownSendersGetNoReply(t *testing.T) {
	w := newWorld(t, nil)
	r, _ := w.mirror()
	c := w.join(r, livekit.Version1, true)
	c.Sees(1)
	name, _ := credentials(c.Own.RemoteDescription().SDP)
	mine, _ := credentials(c.Own.LocalDescription().SDP)
	stranger := w.dial("udp4")
	hello := append([]byte{22, 254, 253, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0}, make([]byte, 256)...)
	for range 200 {
		for _, packet := range [][]byte{
			{}, {0}, make([]byte, 1400), hello, {128, 96, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1}, {129, 200, 0, 1, 0, 0, 0, 1},
			binding(t, "", ""), binding(t, "nobody:"+mine, "a password"), binding(t, name+":"+mine, "a wrong password"),
			binding(t, name, ""), binding(t, name+":"+mine, ""),
		} {
			_, _ = stranger.Write(packet)
		}
	}
	c.Sees(25) // earlier packets have been read by now
	_ = stranger.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
	if n, err := stranger.Read(make([]byte, 1500)); err == nil {
		t.Errorf("a stranger receives %d bytes", n)
	}
}

// unanswered joins a room and returns the server's offer, which the client does not answer.
func (w *world) unanswered(r *Room) (socket *websocket.Conn, offer string) {
	w.Helper()
	socket, _, err := websocket.Dial(w.Context(), w.http.URL+Path+r.Name()+"/rtc?access_token="+w.token(r, false), nil)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { socket.CloseNow() })
	var message livekit.SignalResponse
	for message.Offer == nil {
		if content, err := read(socket); err != nil || livekit.Unmarshal(content, &message) != nil {
			w.Fatalf("the server makes no offer: %v", err)
		}
	}
	return socket, message.Offer.Sdp
}

// A ping costs the server a pong, so that a client could use up the processor with pings.
func TestPingFloodDisconnects(t *testing.T) {
	w := newWorld(t, nil)
	r, _ := w.mirror()
	socket, _ := w.unanswered(r)
	ctx := await.Context(t)
	go func() {
		for socket.Ping(ctx) == nil {
		}
	}()
	for {
		if _, _, err := socket.Read(ctx); ctx.Err() != nil {
			t.Fatal("the connection is still open")
		} else if err != nil {
			return
		}
	}
}

// The library's Close waits without limit for the rest of a message.
func TestHalfMessageAfterLeaveDelaysNoEnd(t *testing.T) {
	w := newWorld(t, nil)
	r, _ := w.mirror()
	var network net.Conn
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, kind, address string) (net.Conn, error) {
		var err error
		network, err = (&net.Dialer{}).DialContext(ctx, kind, address)
		return network, err
	}}}
	socket, _, err := websocket.Dial(t.Context(), w.http.URL+Path+r.Name()+"/rtc?access_token="+w.token(r, true),
		&websocket.DialOptions{HTTPClient: client})
	if err != nil {
		t.Fatal(err)
	}
	defer network.Close()
	leaves := livekit.Marshal(&livekit.SignalRequest{Leave: &livekit.LeaveRequest{}})
	if err := socket.Write(t.Context(), websocket.MessageBinary, leaves); err != nil {
		t.Fatal(err)
	}
	if _, err := network.Write([]byte("\x82\xff\x00\x00\x00\x00\x00\x01\x86\xa0\x00\x00\x00\x00")); err != nil {
		t.Fatal(err)
	}
	await.Until(t, "the participant leaves", func() bool { return !r.has(r.publisher) })
	closed := make(chan bool)
	go func() {
		r.Close(livekit.ReasonRoomDeleted)
		close(closed)
	}()
	await.Receive(t, "the end of the room", closed)
	if err := network.SetReadDeadline(time.Now().Add(await.Max / 4)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, network); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the server keeps the connection open")
	}
}

func heap() int {
	var memory runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&memory)
	return int(memory.HeapAlloc)
}

// The library keeps state for every sender of reports, even for an invented one, so their number is limited.
func TestReportSendersAreLimited(t *testing.T) {
	bounds := newIntake(func() { t.Error("the participant ends") })
	bounds.connected.Store(&time.Time{})
	bounds.buffer(packetio.RTCPBufferPacket, 1)
	bounds.reports.SetLimit(rate.Inf)
	passed := 0
	for i := range 5_000 {
		report := []byte{0x80, 201, 0, 1, byte(i >> 24), byte(i >> 16), byte(i >> 8), byte(i), 0, 0, 0, 0}
		if !bounds.drops(report) {
			passed++
		}
	}
	if passed != maxStreams {
		t.Errorf("reports of %d senders pass, want %d", passed, maxStreams)
	}
	if known := []byte{0x80, 201, 0, 1, 0, 0, 0, 7, 0, 0, 0, 0}; bounds.drops(known) {
		t.Error("another report of a known sender is dropped")
	}
}

// The library keeps every padding-only packet of an unknown stream until the stream begins, so their number is
// limited.
func TestPaddingBeforeStreamIsLimited(t *testing.T) {
	bounds := newIntake(func() { t.Error("the participant ends") })
	one := bounds.buffer(packetio.RTPBufferPacket, 1)
	padding := append([]byte{0xa0, 96, 0, 1}, make([]byte, 11)...)
	padding[len(padding)-1] = 3
	passed := 0
	for range 2 * maxPadding {
		if _, err := one.Write(padding); err != nil {
			t.Fatal(err)
		}
		if bounds.unread.Load() > 0 {
			passed++
			if _, err := one.Read(make([]byte, maxPacket)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if passed != maxPadding {
		t.Errorf("%d packets pass, want %d", passed, maxPadding)
	}
	if _, err := one.Write([]byte{0x80, 96, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 7}); err != nil || bounds.unread.Load() == 0 {
		t.Error("media is dropped")
	}
}

// The library does work for each number between two packets, so a jump costs up to 0.4 ms.
func TestSequenceNumberJumpsAreLimited(t *testing.T) {
	const extension, most = 5, 1<<15 - 1
	info := &interceptor.StreamInfo{RTPHeaderExtensions: []interceptor.RTPHeaderExtension{
		{URI: sdp.TransportCCURI, ID: extension},
	}}
	// passed returns how many of a stream's packets pass. packet and transport return the RTP number and the
	// transport-wide number of packet i.
	passed := func(packets int, packet, transport func(i int) uint16) (n int) {
		i := 0
		source := interceptor.RTPReaderFunc(func(b []byte, a interceptor.Attributes) (int, interceptor.Attributes, error) {
			if i++; i > packets {
				return 0, nil, io.EOF
			}
			h := rtp.Header{Version: 2, SSRC: 1, SequenceNumber: packet(i)}
			if err := h.SetExtension(extension, binary.BigEndian.AppendUint16(nil, transport(i))); err != nil {
				t.Fatal(err)
			}
			size, err := h.MarshalTo(b)
			return size, a, err
		})
		reader := newIntake(func() { t.Error("the participant ends") }).BindRemoteStream(info, source)
		for b := make([]byte, maxPacket); ; n++ {
			if _, _, err := reader.Read(b, interceptor.Attributes{}); err != nil {
				return n
			}
		}
	}
	const count = 1000
	steady := func(i int) uint16 { return uint16(i) }
	for name, jumps := range map[string]func(i int) uint16{
		"forward":        func(i int) uint16 { return uint16(i * most) },
		"every other":    func(i int) uint16 { return uint16(i/2*most + i%2) },
		"back and forth": func(i int) uint16 { return uint16(i%2*most + i) },
	} {
		if n := passed(count, steady, jumps); n > count/2+10 {
			t.Errorf("%s: %d packets of %d with jumping transport numbers pass", name, n, count)
		}
		if name == "back and forth" {
			continue // old packets cost the library nothing
		}
		if n := passed(count, jumps, steady); n > count/2+10 {
			t.Errorf("%s: %d packets of %d with jumping numbers pass", name, n, count)
		}
	}
	restarted := func(i int) uint16 { return uint16(i + i/(count/2)*30_000) }
	if n := passed(count-1, restarted, restarted); n != count-1 {
		t.Errorf("of a client that restarts once, %d packets of %d pass", n, count-1)
	}
}

// A participant's packets are counted before they are decrypted.
func TestMediaIsLimited(t *testing.T) {
	bounds := newIntake(func() { t.Error("the participant ends") })
	packet := []byte{0x80, payloadVP8, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 7}
	for _, connected := range []*time.Time{nil, new(time.Now())} {
		if bounds.connected.Store(connected); !bounds.drops(packet) {
			t.Errorf("media passes before the library accepts streams")
		}
	}
	bounds.connected.Store(&time.Time{})
	early := 0
	for range maxEarly {
		if !bounds.drops(packet) {
			early += len(packet)
		}
		bounds.media.SetLimit(rate.Inf)
	}
	if early > maxEarly {
		t.Errorf("%d bytes pass before the first stream", early)
	}
	bounds.media = rate.NewLimiter(mediaRate, mediaRate)
	bounds.buffer(packetio.RTPBufferPacket, 1)
	passed := 0
	for range 10 * mediaRate {
		if !bounds.drops(packet) {
			passed++
		}
	}
	if passed < mediaRate || passed > 2*mediaRate {
		t.Errorf("%d packets pass", passed)
	}
	w := newWorld(t, nil)
	r, _ := w.mirror()
	viewer, err := newParticipant(r, livekit.Grant{Room: r.Name(), Identity: "one"}, livekit.Version1)
	if err != nil {
		t.Fatal(err)
	}
	defer viewer.end(livekit.ReasonJoinFailure, livekit.ActionDisconnect)
	if burst := viewer.own.bounds.media.Burst(); burst != unwantedRate {
		t.Errorf("a client that may only watch may send %d packets at once", burst)
	}
}

// Each audio packet goes to all viewers.
func TestSoundIsLimited(t *testing.T) {
	w := newWorld(t, nil)
	r, heard := w.mirror()
	c := livekittest.New(t, w.as(r, livekit.Version1, true))
	c.Open()
	publish := func() *webrtc.TrackLocalStaticRTP {
		track, err := webrtc.NewTrackLocalStaticRTP(
			webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypeOpus, ClockRate: audioClock, Channels: 2}, rand.Text(), "mine")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Own.AddTrack(track); err != nil {
			t.Fatal(err)
		}
		c.Negotiate(false)
		return track
	}
	number := uint16(0)
	send := func(track *webrtc.TrackLocalStaticRTP, payload []byte) {
		number++
		packet := &rtp.Packet{Header: rtp.Header{Version: 2, SequenceNumber: number, Timestamp: 960 * uint32(number)}, Payload: payload}
		if err := track.WriteRTP(packet); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
	first := publish()
	viewer := w.join(r, livekit.Version1, false)
	const replaced, large = 4, 5
	// until sends a payload until it arrives.
	until := func(track *webrtc.TrackLocalStaticRTP, payload byte) {
		for end := time.Now().Add(await.Max); time.Now().Before(end); {
			send(track, []byte{payload})
			time.Sleep(10 * time.Millisecond)
			for len(viewer.Heard) > 0 {
				switch (<-viewer.Heard)[0] {
				case payload:
					return
				case replaced:
					t.Fatal("the replaced track is forwarded")
				case large:
					t.Fatal("a packet that is too large is forwarded")
				}
			}
		}
		t.Fatalf("sound %d does not arrive", payload)
	}
	until(first, 1)
	began, before := time.Now(), heard.Load()
	for range 1000 {
		send(first, make([]byte, 100))
	}
	most := int64(soundBurst + soundRate*(1+time.Since(began).Seconds()))
	until(first, 2)
	if n := heard.Load() - before; n > most {
		t.Errorf("%d packets are forwarded, want at most %d", n, most)
	}
	second := publish()
	until(second, 3)
	for range 20 {
		send(first, []byte{replaced})
		send(second, append([]byte{large}, make([]byte, maxSoundSize)...))
	}
	until(second, 6)
}

// If two sections declared one stream, the library would read it twice and panic.
func TestStreamsBelongToOneSection(t *testing.T) {
	section := "m=video 9 UDP/TLS/RTP/SAVPF 96\r\nc=IN IP4 0.0.0.0\r\na=mid:%s\r\na=rtpmap:96 VP8/90000\r\na=sendrecv\r\na=ssrc:%d x\r\n"
	read := func(text string, values ...any) (description, error) {
		return readOffer("v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\n" + fmt.Sprintf(text, values...))
	}
	for _, values := range [][]any{{"a", 5, "b", 5}, {"a", 5, "a", 6}, {"", 5, "b", 6}} {
		if _, err := read(section+section, values...); !errors.Is(err, errOffer) {
			t.Errorf("%v: %v", values, err)
		}
	}
	if _, err := read(section+"a=fmtp:96 "+strings.Repeat("a=1;", 1000)+"\r\n", "a", 5); !errors.Is(err, errOffer) {
		t.Errorf("a line of 4 kB: %v", err)
	}
	if d, err := read(section+"a=fmtp:96 "+strings.Repeat("a=1;", 400)+"\r\n", "a", 5); err != nil || strings.Contains(d.text, "fmtp") {
		t.Errorf("long parameters are kept: %v", err)
	}
	bounds := newIntake(func() {})
	bounds.buffer(packetio.RTPBufferPacket, 7)
	for _, c := range []struct {
		mid    string
		source int
		want   bool
	}{{"a", 5, true}, {"a", 6, true}, {"a", 5, true}, {"b", 5, false}, {"b", 7, false}} {
		d, err := read(section, c.mid, c.source)
		if err != nil {
			t.Fatal(err)
		}
		if got := bounds.claim(d); got != c.want {
			t.Errorf("section %s may declare %d: %t", c.mid, c.source, got)
		}
	}
	layered, err := read(strings.ReplaceAll(section, "a=ssrc:%d x", "a=rid:f send"), "a")
	if err != nil || bounds.claim(layered) {
		t.Errorf("a section may name its stream in another way: %v", err)
	}
	// A stream that opens while it is not declared cannot be declared again.
	if bounds.buffer(packetio.RTPBufferPacket, 6); bounds.claim(description{sources: map[uint32]string{6: "a"}}) {
		t.Error("a section may declare a stream with an unknown reader")
	}
}

// If a client declares a stream in several ways, the library reads the stream twice. It would panic if the readers
// did not take turns.
func TestReadersOfStreamTakeTurns(t *testing.T) {
	var reading, total atomic.Int64
	source := interceptor.RTPReaderFunc(func([]byte, interceptor.Attributes) (int, interceptor.Attributes, error) {
		if reading.Add(1) > 1 {
			t.Error("two goroutines read one stream")
		}
		defer reading.Add(-1)
		time.Sleep(time.Millisecond)
		if total.Add(1) > 20 {
			return 0, nil, io.EOF
		}
		return 0, nil, nil
	})
	bounds := newIntake(func() {})
	var readers sync.WaitGroup
	for range 2 {
		reader := bounds.BindRemoteStream(&interceptor.StreamInfo{SSRC: 5}, source)
		readers.Go(func() {
			_, _, err := reader.Read(make([]byte, maxPacket), nil)
			if !errors.Is(err, io.EOF) {
				t.Error(err)
			}
		})
	}
	readers.Wait()
}

// The library keeps a transceiver for each section that a client has ever named, and all descriptions of a client
// that is not connected.
func TestDescriptionsAreLimited(t *testing.T) {
	w := newWorld(t, nil)
	r, _ := w.mirror()
	p, err := newParticipant(r, livekit.Grant{Room: r.Name(), Identity: "one", Publish: true}, livekit.Version1)
	if err != nil {
		t.Fatal(err)
	}
	defer p.end(livekit.ReasonJoinFailure, livekit.ActionDisconnect)
	refused := false
	for n := 0; n < 100 && !refused; n++ {
		offer := "v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\na=fingerprint:sha-256 " + strings.Repeat("AB:", 31) + "AB\r\n" +
			fmt.Sprintf("a=group:BUNDLE m%[1]d\r\nm=video 9 UDP/TLS/RTP/SAVPF 96\r\nc=IN IP4 0.0.0.0\r\na=mid:m%[1]d%[2]s\r\na=x:y\r\n", n, strings.Repeat(" ", n)) +
			"a=ice-ufrag:abcd\r\na=ice-pwd:abcdefghijklmnopqrstuvwx\r\na=setup:actpass\r\na=rtcp-mux\r\na=rtpmap:96 VP8/90000\r\na=sendrecv\r\n"
		read, err := readOffer(offer)
		if err != nil || strings.Contains(read.text, " \r\n") || strings.Contains(read.text, "a=x") {
			t.Fatal(read.text, err)
		}
		_, err = p.own.answer(read, func() error { return nil })
		if refused = errors.Is(err, errOffer); err != nil && !refused {
			t.Fatal(err)
		}
	}
	if kept := len(p.own.GetTransceivers()); !refused || kept > maxSections+1 {
		t.Errorf("%d transceivers are kept, an offer is rejected: %t", kept, refused)
	}
	allowed := 0
	for p.own.mayDescribe() {
		allowed++
	}
	if allowed != maxEarlyDescriptions {
		t.Errorf("%d descriptions are allowed before the client is connected", allowed)
	}
	p.own.connected.Store(true)
	if !p.own.mayDescribe() {
		t.Error("a connected client may not describe itself")
	}
}

// The library keeps all handshake messages, even after the handshake has ended. Their sender is unproven, so they
// must not end the connection either.
func TestForgedRecordsAreDropped(t *testing.T) {
	w := newWorld(t, nil)
	r, _ := w.mirror()
	c := w.join(r, livekit.Version1, true)
	c.Sees(1)
	name, password := w.peer(c)
	socket := w.dial("udp4")
	_, _ = socket.Write(binding(t, name, password))
	empty := make([]byte, 12) // a message of an unknown type
	empty[0] = 99
	messages := bytes.Repeat(empty, 64)
	record := append([]byte{22, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 1, byte(len(messages) >> 8), byte(len(messages))}, messages...)
	for range 200 {
		_, _ = socket.Write(record)
	}
	plain := func(kind byte) []byte {
		return append([]byte{kind, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 3, 232, 0, 7}, make([]byte, 7)...)
	}
	for _, kind := range []byte{20, 21, 23, 24, 25} {
		_, _ = socket.Write(plain(kind))
	}
	bounds := newIntake(func() { t.Error("the participant ends") })
	bounds.connected.Store(&time.Time{})
	for range 100 {
		for _, kind := range []byte{20, 21, 23, 24, 25} {
			if !bounds.drops(plain(kind)) {
				t.Errorf("a plain record of type %d passes", kind)
			}
		}
		bounds.drops(record)
	}
	if !bounds.drops(record) {
		t.Error("an endless handshake passes")
	}
	c.Sees(10)
}

func TestMediaBeforeHandshakeIsDropped(t *testing.T) {
	w := newWorld(t, nil)
	r, _ := w.mirror()
	config := w.as(r, livekit.Version1, true)
	config.Networks = []webrtc.NetworkType{webrtc.NetworkTypeTCP6} // so it cannot connect
	c := livekittest.Join(t, config)
	name, password := w.peer(c)
	socket := w.dial("udp4")
	err := errors.New("not tried")
	for end := time.Now().Add(await.Max); err != nil && time.Now().Before(end); {
		_, _ = socket.Write(binding(t, name, password))
		_ = socket.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		_, err = socket.Read(make([]byte, 1500))
	}
	if err != nil {
		t.Fatal(err)
	}
	before := heap()
	for i := range 4_000 {
		for _, kind := range []byte{96, 200} { // RTP and RTCP
			_, _ = socket.Write(append([]byte{0x80, kind}, make([]byte, 1000)...))
		}
		if i%25 == 0 {
			time.Sleep(time.Millisecond) // otherwise most packets would be lost
		}
	}
	time.Sleep(time.Second)
	if grown := heap() - before; grown > 1<<20 {
		t.Errorf("the heap has grown by %d bytes", grown)
	}
}

func TestPacketsBeforeAnswerAreDropped(t *testing.T) {
	w := newWorld(t, nil)
	r, _ := w.mirror()
	_, offer := w.unanswered(r)
	name, _ := credentials(offer)
	stranger := w.dial("udp4")
	client := w.join(r, livekit.Version0, true)
	client.Sees(1)
	packet, before := binding(t, name+":me", ""), heap()
	for i := range 20_000 {
		_, _ = stranger.Write(packet)
		if i%50 == 0 {
			time.Sleep(time.Millisecond) // otherwise most packets would be lost
		}
	}
	client.Sees(25) // earlier packets have been read by now
	if grown := heap() - before; grown > 8<<20 {
		t.Errorf("the heap has grown by %d bytes", grown)
	}
}

// The library's queue for a peer is unlimited, and takes 8 KiB for each packet.
func TestFloodUsesLittleMemory(t *testing.T) {
	w := newWorld(t, nil)
	r, _ := w.mirror()
	c := w.join(r, livekit.Version1, true)
	c.Sees(1)
	name, password := w.peer(c)
	socket := w.dial("udp4")
	packet, before := binding(t, name, password), heap()
	for range 60_000 {
		_, _ = socket.Write(packet)
	}
	if grown := heap() - before; grown > 100<<20 {
		t.Errorf("the heap has grown by %d bytes", grown)
	}
	c.Sees(25)
}

func TestUnansweredOfferDisconnectsParticipant(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	r, _ := w.mirror()
	socket, _ := w.unanswered(r)
	time.Sleep(answerTime + time.Second)
	ping := int64(1)
	_ = socket.Write(w.Context(), websocket.MessageBinary, livekit.Marshal(&livekit.SignalRequest{Ping: &ping}))
	var message livekit.SignalResponse
	if content, err := read(socket); err != nil || livekit.Unmarshal(content, &message) != nil || message.Leave == nil {
		t.Errorf("the server sends %v, %v", &message, err)
	}
}

// Only a limited number of a client's addresses get responses, each at most twice as long as its request.
func TestAddressesPerClientAreLimited(t *testing.T) {
	w := newWorld(t, nil)
	r, _ := w.mirror()
	c := w.join(r, livekit.Version1, true)
	c.Sees(1)
	name, password := w.peer(c)
	var sockets []net.Conn
	for range 3 * maxCandidates {
		socket := w.dial("udp4")
		sockets = append(sockets, socket)
		_, _ = socket.Write(binding(t, name, password))
	}
	c.Sees(25)
	answered := 0
	for _, socket := range sockets {
		_ = socket.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
		n, err := socket.Read(make([]byte, 1500))
		if err == nil {
			answered++
		}
		if n > 2*len(binding(t, name, password)) {
			t.Errorf("a response has %d bytes", n)
		}
	}
	// While the test ran, a few more addresses became allowed.
	if answered == 0 || answered > 2*maxCandidates {
		t.Errorf("%d addresses are answered", answered)
	}
}

func TestHalfOpenConnectionIsClosed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	var conns []net.Conn
	for i := range 2 * maxFromAddress {
		conn := w.dial("tcp4")
		conns = append(conns, conn)
		request := binding(t, fmt.Sprintf("nobody%d:me", i), "a password")
		framed := append([]byte{0, byte(len(request))}, request...)
		switch i % 4 {
		case 0: // silent
		case 1: // sends only the start of a packet
			_, _ = conn.Write(framed[:1])
		case 2: // announces an oversized packet
			_, _ = conn.Write([]byte{255, 255, 0})
		case 3: // names a participant that does not exist
			_, _ = conn.Write(framed)
		}
	}
	for i, conn := range conns {
		_ = conn.SetReadDeadline(time.Now().Add(await.Max))
		var timeout net.Error
		if _, err := conn.Read(make([]byte, 1)); errors.As(err, &timeout) && timeout.Timeout() {
			t.Fatalf("connection %d stays open", i)
		}
	}
	r, _ := w.mirror()
	w.join(r, livekit.Version1, true, webrtc.NetworkTypeTCP4).Sees(10)
}

// The library would keep a connection's packets for each new name, even after the connection has ended.
func TestUnknownNamesUseNoMemory(t *testing.T) {
	w := newWorld(t, nil)
	before := heap()
	for i := range 1000 {
		conn, err := net.Dial("tcp4", w.config.Ports.Address())
		if err != nil {
			t.Fatal(err)
		}
		request := binding(t, fmt.Sprintf("nobody%d:me", i), "a password")
		frames := append([]byte{0, byte(len(request))}, request...)
		for range 10 {
			frames = append(append(frames, 4, 0), make([]byte, 1024)...)
		}
		_, _ = conn.Write(frames)
		conn.Close()
	}
	if grown := heap() - before; grown > 4<<20 {
		t.Errorf("the heap has grown by %d bytes", grown)
	}
	r, _ := w.mirror()
	w.join(r, livekit.Version1, true, webrtc.NetworkTypeTCP4).Sees(10)
}

// Each connection buffers packets that its client does not read.
func TestConnectionsPerPeerAreLimited(t *testing.T) {
	w := newWorld(t, nil)
	r, _ := w.mirror()
	c := w.join(r, livekit.Version1, false)
	name, password := w.peer(c)
	request := binding(t, name, password)
	// connects reports whether another connection gets a response.
	connects := func() (conn net.Conn, answered bool) {
		conn = w.dial("tcp4")
		_, _ = conn.Write(append([]byte{0, byte(len(request))}, request...))
		_ = conn.SetReadDeadline(time.Now().Add(await.Max))
		_, err := conn.Read(make([]byte, 1))
		return conn, err == nil
	}
	var first net.Conn
	for i := range maxFromPeer {
		conn, answered := connects()
		if !answered {
			t.Fatalf("connection %d gets no response", i+1)
		}
		first = conn
	}
	if _, answered := connects(); answered {
		t.Error("another connection gets a response")
	}
	first.Close()
	await.Until(t, "a connection replaces one that was closed", func() bool { _, answered := connects(); return answered })
}

func TestUnreadConnectionIsClosed(t *testing.T) {
	_, conn := connect(t, newListener(t))
	conn.stall = time.Second
	sent := 0
	var err error
	for err == nil && sent < 1<<30 {
		var n int
		n, err = conn.Write(make([]byte, 1000))
		sent += n
	}
	// The client's system also holds some bytes.
	if err == nil || sent > 1<<20 {
		t.Errorf("%d bytes wait: %v", sent, err)
	}
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the connection stays open: %v", err)
	}
}

func newListener(t *testing.T) *fairListener {
	t.Helper()
	plain, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { plain.Close() })
	return newFairListener(plain)
}

// connect returns both ends of a new connection.
func connect(t *testing.T, l *fairListener) (net.Conn, *fairConn) {
	t.Helper()
	client, err := net.Dial("tcp4", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close(); conn.Close() })
	return client, conn.(*fairConn)
}

func TestConnectionsPerAddressAreLimited(t *testing.T) {
	l := newListener(t)
	dial := func(from byte) net.Conn {
		t.Helper()
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, from)}}
		conn, err := dialer.Dial("tcp4", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	accepts := func(from byte) net.Conn {
		t.Helper()
		conn, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		if got := conn.RemoteAddr().(*net.TCPAddr).IP.To4()[3]; got != from {
			t.Fatalf("accepted 127.0.0.%d, want 127.0.0.%d", got, from)
		}
		return conn
	}
	var first net.Conn
	for i := range maxFromAddress {
		dial(1)
		if conn := accepts(1); i == 0 {
			first = conn
		}
	}
	tooMany := dial(1)
	dial(2)
	accepts(2)
	_ = tooMany.SetReadDeadline(time.Now().Add(await.Max))
	var timeout net.Error
	if _, err := tooMany.Read(make([]byte, 1)); err == nil || errors.As(err, &timeout) && timeout.Timeout() {
		t.Errorf("one connection too many is not closed: %v", err)
	}
	first.Close()
	first.Close() // closing twice counts once
	dial(1)
	accepts(1)
	if n := l.open[networkOf(first, 64)]; n != maxFromAddress {
		t.Errorf("%d connections are counted, want %d", n, maxFromAddress)
	}
}

// An IPv6 /48 network has 65,536 networks of the size that counts as one address.
func TestOneSiteCannotTakeAllMediaConnections(t *testing.T) {
	const networks = 3 * maxFromSite
	arriving := &scripted{}
	for i := range networks {
		from := netip.MustParseAddr("2001:db8:1::1").As16()
		binary.BigEndian.PutUint16(from[6:], uint16(i))
		ours, _ := net.Pipe()
		arriving.conns = append(arriving.conns, &from6{ours, net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.AddrFrom16(from), 9))})
	}
	l := newFairListener(arriving)
	accepted := 0
	for {
		conn, err := l.Accept()
		if err != nil {
			break
		}
		defer conn.Close()
		accepted++
	}
	if accepted != maxFromSite {
		t.Errorf("%d of %d connections are accepted, want %d", accepted, networks, maxFromSite)
	}
}

func TestMediaConnectionsAreReplaced(t *testing.T) {
	l := newListener(t)
	l.most = 16
	l.know("victim", true)
	l.know("greedy", true)
	var accepted []*fairConn
	names := append(slices.Concat([]string{"victim"}, slices.Repeat([]string{"greedy"}, 13)), "", "", "", "greedy", "")
	for i, name := range names {
		_, conn := connect(t, l)
		accepted = append(accepted, conn)
		if name != "" && !l.identify(accepted[i], name) {
			t.Fatalf("connection %d of %s is not kept", i, name)
		}
	}
	// With two strangers, the oldest is replaced. With fewer, the oldest greedy connection is.
	for i := range names {
		if want := slices.Contains([]int{14, 15, 1}, i); accepted[i].closed != want {
			t.Errorf("connection %d is closed: %v, want %v", i, accepted[i].closed, want)
		}
	}
	if l.connections != 16 || len(l.names["greedy"]) != 13 {
		t.Errorf("%d connections are counted, %d of them greedy", l.connections, len(l.names["greedy"]))
	}
	l.most = 1
	for _, other := range accepted[1:] {
		other.Close()
	}
	client, err := net.Dial("tcp4", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	go l.Accept()
	_ = client.SetReadDeadline(time.Now().Add(await.Max))
	if _, err := client.Read(make([]byte, 1)); err != io.EOF || accepted[0].closed {
		t.Errorf("while the only connection is a peer's, another got %v", err)
	}
}

// scripted is a listener that accepts its connections and then fails.
type scripted struct {
	net.Listener
	conns []net.Conn
}

func (s *scripted) Accept() (net.Conn, error) {
	if len(s.conns) == 0 {
		return nil, io.EOF
	}
	conn := s.conns[0]
	s.conns = s.conns[1:]
	return conn, nil
}

type from6 struct {
	net.Conn
	address *net.TCPAddr
}

func (c *from6) RemoteAddr() net.Addr { return c.address }

// Every stream uses memory until the client leaves.
func TestTooManyStreamsDisconnectClient(t *testing.T) {
	w := newWorld(t, nil)
	r, _ := w.mirror()
	c := livekittest.Join(t, w.as(r, livekit.Version1, true))
	c.Sees(1)
	writer := *c.Packets.Load()
	for i := range uint32(10 * maxStreams) {
		header := &rtp.Header{Version: 2, PayloadType: payloadVP8, SSRC: 1000 + i, SequenceNumber: uint16(i)}
		if _, err := writer.Write(header, make([]byte, 100), interceptor.Attributes{}); err != nil {
			break
		}
		if i%16 == 0 {
			time.Sleep(time.Millisecond) // otherwise most packets would be lost
		}
	}
	if leave := c.Left(); leave.Reason != livekit.ReasonJoinFailure {
		t.Errorf("the server ends with %v", leave)
	}
	// The client may join again afterwards.
	w.join(r, livekit.Version1, true).Sees(10)
}

func TestExcessiveReportsAreDropped(t *testing.T) {
	var sent [][]byte
	for range 50 {
		// This report covers 65535 packets in a few bytes.
		sent = append(sent, []byte{
			128 | tellsTime, aboutTransport, 0, 5, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 255, 255, 0, 0, 0, 0, 31, 255, 31, 255,
		})
	}
	sent = append(sent, []byte{129, aboutTransport, 255, 255, 0}, []byte{1})
	honest, err := rtcp.Marshal([]rtcp.Packet{&rtcp.PictureLossIndication{SenderSSRC: 1, MediaSSRC: 2}})
	if err != nil {
		t.Fatal(err)
	}
	sent = append(sent, honest)
	reader := newIntake(func() {}).BindRTCPReader(interceptor.RTCPReaderFunc(
		func(b []byte, a interceptor.Attributes) (int, interceptor.Attributes, error) {
			if len(sent) == 0 {
				return 0, nil, io.EOF
			}
			n := copy(b, sent[0])
			sent = sent[1:]
			return n, a, nil
		}))
	read, last := 0, ""
	for {
		b := make([]byte, 1500)
		n, _, err := reader.Read(b, nil)
		if err != nil {
			break
		}
		read, last = read+1, string(b[:n])
	}
	if read != 1 || last != string(honest) {
		t.Errorf("%d reports are read, the last is %q", read, last)
	}
}

// When one client requests a key frame, all clients receive it.
func TestKeyFramesAreRateLimited(t *testing.T) {
	w := newWorld(t, nil)
	r, err := w.Open(Config{Account: "acme", Session: "session_1", Heard: func() {}, MayJoin: always})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close(livekit.ReasonRoomDeleted)
	viewer := w.join(r, livekit.Version1, false)
	sends := w.join(r, livekit.Version1, true)
	keys, began := 0, time.Now()
	for frame := range r.Frames() {
		if r.KeyWanted() {
			keys++
		}
		r.Send(frame.Data, frame)
		for _, receiver := range viewer.Own.GetReceivers() {
			if track := receiver.Track(); track != nil {
				_ = viewer.Own.WriteRTCP([]rtcp.Packet{&rtcp.PictureLossIndication{MediaSSRC: uint32(track.SSRC())}})
			}
		}
		if sends.Sent.Load() > 60 {
			break
		}
	}
	if most := 1 + int(time.Since(began)/keyEvery); keys == 0 || keys > most {
		t.Errorf("%d key frames were requested in %v, want at most %d", keys, time.Since(began), most)
	}
}

// The server does not use data channels, so it answers none of a client's packets for them.
func TestDataChannelsAreRejected(t *testing.T) {
	w := newWorld(t, nil)
	r, _ := w.mirror()
	c := w.join(r, livekit.Version1, true)
	if _, err := c.Own.CreateDataChannel("more", nil); err != nil {
		t.Fatal(err)
	}
	c.Sees(10)
	if state := c.Own.SCTP().State(); state == webrtc.SCTPTransportStateConnected {
		t.Errorf("the data connection is %v", state)
	}
	record := append([]byte{23, 0xfe, 0xfd, 0, 1, 0, 0, 0, 0, 0, 1, 0, 20}, make([]byte, 20)...)
	if !newIntake(func() {}).drops(record) {
		t.Error("a record with data reaches the library")
	}
}

func TestConcurrentUsesOfTokenAdmitOne(t *testing.T) {
	w := newWorld(t, nil)
	r, _ := w.mirror()
	config := w.as(r, livekit.Version1, true)
	const places = 8 // fewer than the ten joins that a token may attempt at once
	leaves := make(chan *livekit.LeaveRequest, places)
	var joining sync.WaitGroup
	for range places {
		c := livekittest.New(t, config)
		c.Leaves = leaves
		joining.Go(func() {
			if err := c.TryDial(""); err != nil {
				t.Error(err)
			}
		})
	}
	joining.Wait()
	for range places - 1 {
		select {
		case leave := <-leaves:
			if leave.Reason != livekit.ReasonDuplicateIdentity {
				t.Errorf("a client received %v", leave)
			}
		case <-time.After(await.Max):
			t.Fatal("more than one client is in the room")
		}
	}
	livekittest.Join(t, config).Sees(5)
}

func TestSignalingIsRateLimited(t *testing.T) {
	w := newWorld(t, nil)
	r, _ := w.mirror()
	c := livekittest.Join(t, w.as(r, livekit.Version1, false))
	for range 10 {
		c.Write(append([]byte("\x22\xc0\x9a\x0c"), bytes.Repeat([]byte("\x4a\x00"), 100_000)...)) // many layers
	}
	if leave := c.Left(); leave.Reason != livekit.ReasonParticipantRemoved {
		t.Errorf("the server ends with %v", leave)
	}
}

// The library keeps closed streams, and writes a report without a recipient to all streams.
func TestClosedStreamsAndUnknownReportsNeedNothing(t *testing.T) {
	ended := make(chan bool, 1)
	i := newIntake(func() { ended <- true })
	reports := i.buffer(packetio.RTCPBufferPacket, 0)
	if _, err := reports.Write([]byte{128, 210, 0, 0}); err != nil || i.unread.Load() != 0 {
		t.Errorf("an unknown report takes %d bytes: %v", i.unread.Load(), err)
	}
	before := heap()
	var kept []io.ReadWriteCloser
	for n := range uint32(maxOpened) {
		one := i.buffer(packetio.RTPBufferPacket, n)
		for range 100 {
			_, _ = one.Write(make([]byte, 1000))
		}
		if err := one.Close(); err != nil {
			t.Fatal(err)
		}
		kept = append(kept, one)
	}
	if size := heap() - before; size > 1<<20 || i.unread.Load() != 0 {
		t.Errorf("%d closed streams take %d bytes, %d unread", len(kept), size, i.unread.Load())
	}
	await.Receive(t, "the end of the participant", ended)
}

func TestUnreadPacketsNeedLittleMemory(t *testing.T) {
	for _, reports := range []int{0, maxReported} {
		i, packet, kept := newIntake(func() {}), make([]byte, 1000), 0
		packet[1] = senderReport
		i.delivered.SetLimit(rate.Inf)
		var last io.ReadWriter
		for n := range maxStreams {
			kind := packetio.RTPBufferPacket
			if n < reports {
				kind = packetio.RTCPBufferPacket
			}
			last = i.buffer(kind, uint32(n))
			for range 200 {
				if _, err := last.Write(packet); err == nil {
					kept += len(packet)
				}
			}
		}
		if kept > 3<<19 {
			t.Errorf("with %d report streams, %d bytes are kept", reports, kept)
		}
		_, failed := last.Read(make([]byte, 1500))
		if _, err := last.Write(packet); err != nil || failed != nil {
			t.Errorf("with %d report streams, a stream with a reader gets no packet: %v, %v", reports, err, failed)
		}
	}
}
