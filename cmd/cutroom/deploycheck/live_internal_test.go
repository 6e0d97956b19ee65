package deploycheck

import (
	"context"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/pion/webrtc/v4"

	"cutroom/shared/service/realtime/livekit"
)

// offerAt returns an offer of video whose media is at an address.
func offerAt(t *testing.T, address string) string {
	t.Helper()
	peer, err := webrtc.NewPeerConnection(webrtc.Configuration{})
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	if _, err := peer.AddTransceiverFromKind(webrtc.RTPCodecTypeVideo); err != nil {
		t.Fatal(err)
	}
	offer, err := peer.CreateOffer(nil)
	if err != nil {
		t.Fatal(err)
	}
	candidates := "a=candidate:1 1 udp 2130706431 " + address + " 8082 typ host\r\n" +
		"a=candidate:2 1 tcp 1671430143 " + address + " 8082 typ host tcptype passive\r\n"
	return regexp.MustCompile(`(?m)^a=end-of-candidates\r?\n`).ReplaceAllString(offer.SDP, "") + candidates
}

// A task that is not there at the address that its room tells is named with it.
func TestATaskThatNobodyReaches(t *testing.T) {
	const nobody = "198.51.100.1" // of documentation (RFC 5737)
	content := livekit.Marshal(&livekit.SignalResponse{
		Offer: &livekit.SessionDescription{Type: "offer", Sdp: offerAt(t, nobody)},
	})
	answered := make(chan struct{})
	room := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		socket, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer socket.CloseNow()
		_ = socket.Write(r.Context(), websocket.MessageBinary, content) // fails when the test is over
		_, _, _ = socket.Read(r.Context())                              // the answer
		close(answered)
		_, _, _ = socket.Read(r.Context()) // the end
	}))
	defer room.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		<-answered
		cancel() // nothing would ever answer
	}()
	v := &visit{http: room.Client()}
	at, err := v.reach(ctx, message{URL: "ws" + strings.TrimPrefix(room.URL, "http")},
		[]webrtc.NetworkType{webrtc.NetworkTypeUDP4})
	const want = "nothing answers at 198.51.100.1:8082 by udp, 198.51.100.1:8082 by tcp"
	if err == nil || err.Error() != want {
		t.Errorf("%s, %v, want %q", at, err, want)
	}
}
