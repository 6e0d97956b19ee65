package room

import (
	"crypto/rand"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/pion/rtcp"
	"github.com/pion/sdp/v3"
	"github.com/pion/webrtc/v4"

	"cutroom/shared/service/realtime/livekit"
)

// anOffer returns an offer made by the library, with one camera in three sizes.
func anOffer(t testing.TB) string {
	t.Helper()
	pc, err := webrtc.NewPeerConnection(webrtc.Configuration{})
	if err != nil {
		t.Fatal(err)
	}
	defer pc.Close()
	for _, kind := range []webrtc.RTPCodecType{webrtc.RTPCodecTypeAudio, webrtc.RTPCodecTypeVideo} {
		if _, err := pc.AddTransceiverFromKind(kind); err != nil {
			t.Fatal(err)
		}
	}
	offer, err := pc.CreateOffer(nil)
	if err != nil {
		t.Fatal(err)
	}
	return offer.SDP + "a=rid:q send\r\na=rid:h send\r\na=rid:f send\r\na=simulcast:send q;h;f\r\n" +
		"a=candidate:1 1 udp 1 192.0.2.1 9 typ host\r\n"
}

// The description that the library gets is short, has only usual attributes, and has at most one stream per section.
func FuzzOffers(f *testing.F) {
	f.Add(anOffer(f))
	f.Add("v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\nm=video 9 UDP/TLS/RTP/SAVPF 96\r\na=rid:\r\na=rid: \r\na=rid:x send\r\n")
	f.Add("v=0\no=- 0 0 IN IP4 0.0.0.0\ns=-\nt=0 0\nm=video 0 AVP 96\na=rid\r0\na=rid:0\n")
	f.Add(anOffer(f) + strings.Repeat("a=rid:f send\r\na=ssrc:1 a\r\n", 400))
	f.Add(anOffer(f) + "a=mid:1\r\na=ssrc-group:FID 5 6\r\na=ssrc:5 a\r\na=ssrc:6 a\r\na=ssrc:7 a\r\na=ssrc:05 a\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		read, err := readOffer(text)
		_, _ = closeEmpty(text)
		if err != nil {
			return
		}
		var offer sdp.SessionDescription
		if offer.UnmarshalString(read.text) != nil {
			return // the library rejects it as well
		}
		if len(offer.MediaDescriptions) > maxSections {
			t.Errorf("%d sections", len(offer.MediaDescriptions))
		}
		for _, media := range offer.MediaDescriptions {
			lines, streams := map[string]int{}, map[string]bool{}
			for _, attribute := range media.Attributes {
				lines[attribute.Key]++
				if first, _ := cut(attribute.Value); attribute.Key == "ssrc" && first != "none" {
					streams[first] = true
				}
				if lines[attribute.Key] > usual[attribute.Key] {
					t.Errorf("the section has %d lines of %s", lines[attribute.Key], attribute.Key)
				}
			}
			if len(streams) > 1+lines["ssrc-group"] || len(streams) > 0 && lines["rid"] > 0 {
				t.Errorf("the section has the streams %v", streams)
			}
		}
	})
}

func FuzzSignals(f *testing.F) {
	logger := slog.New(slog.DiscardHandler)
	ports, err := Listen(PortsConfig{Address: "127.0.0.1:0", Logger: logger})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { ports.Close() })
	server := NewServer(ServerConfig{
		Ports: ports, Secret: []byte("a secret of this test"), Now: time.Now, NewID: rand.Text, Logger: logger,
	})
	offer := anOffer(f)
	for _, seed := range []*livekit.SignalRequest{
		{Offer: &livekit.SessionDescription{Type: "offer", Sdp: offer, Id: 1}},
		{Offer: &livekit.SessionDescription{}},
		{Answer: &livekit.SessionDescription{Type: "answer", Sdp: offer}},
		{AddTrack: &livekit.AddTrackRequest{
			Cid: "camera", Type: livekit.TrackVideo, Width: 1 << 31, Height: 1, Layers: []*livekit.VideoLayer{{}},
		}},
		{PingReq: &livekit.Ping{Timestamp: -1}},
	} {
		content := livekit.Marshal(seed)
		f.Add(content, true, true)
		f.Add(content, false, false)
	}
	f.Fuzz(func(t *testing.T, content []byte, newer, publishes bool) {
		var message livekit.SignalRequest
		if livekit.Unmarshal(content, &message) != nil {
			return
		}
		r, err := server.Open(Config{Account: "acme", Session: "session_1", Heard: func() {}, MayJoin: always})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close(livekit.ReasonRoomDeleted)
		version := livekit.Version0
		if newer {
			version = livekit.Version1
		}
		p, err := newParticipant(r, livekit.Grant{Room: r.Name(), Identity: "one", Publish: publishes}, version)
		if err != nil {
			t.Fatal(err)
		}
		if !r.enter(p) {
			t.Fatal("an open room admits no client")
		}
		p.welcome(&livekit.JoinRequest{PublisherOffer: message.Offer})
		p.handle(&message)
		p.handle(&message)
		if !publishes && len(r.Frames()) > 0 {
			t.Error("a viewer can send frames")
		}
	})
}

// Every report's count is correct, and no report causes more lookups than its count.
func FuzzReports(f *testing.F) {
	f.Add([]byte{128 | tellsTime, aboutTransport, 0, 5, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 9, 0, 0, 0, 0, 0xa0, 0, 0, 0})
	f.Add([]byte{129, aboutTransport, 0, 3, 0, 0, 0, 1, 0, 0, 0, 2, 0, 1, 255, 255})
	f.Add([]byte(strings.Repeat("\x80\xcd\x00\x00", 10)))
	f.Fuzz(func(t *testing.T, content []byte) {
		counted := coveredPackets(content)
		if counted > feedbackBurst {
			return // dropped
		}
		reports, err := rtcp.Unmarshal(content)
		if err != nil {
			return
		}
		looked := 0
		for _, report := range reports {
			switch r := report.(type) {
			case *rtcp.TransportLayerCC:
				trim(r)
				for _, part := range r.PacketChunks {
					switch part := part.(type) {
					case *rtcp.RunLengthChunk:
						looked += int(part.RunLength)
					case *rtcp.StatusVectorChunk:
						looked += len(part.SymbolList)
					}
				}
			case *rtcp.TransportLayerNack:
				for _, pair := range r.Nacks {
					looked += len(pair.PacketList())
				}
			}
		}
		if looked > counted {
			t.Errorf("%d packets are looked up, %d are counted", looked, counted)
		}
	})
}
