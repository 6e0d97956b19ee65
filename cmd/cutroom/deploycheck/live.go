package deploycheck

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/coder/websocket"
	"github.com/pion/webrtc/v4"

	"cutroom/shared/service/realtime/livekit"
)

const (
	// noLive is what a session without live video says (docs/contract/realtime.md#transports).
	noLive = "LiveKit transport not allowed"
	// reachTime is how long a task may take to answer at its port of media.
	reachTime = 15 * time.Second
	// maxSignal is the longest message of a room, in bytes.
	maxSignal = 1 << 20
)

// checkLive joins the room of a session and connects to it by UDP, and then by TCP, which
// show that everybody reaches the task at the address that it tells.
func checkLive(ctx context.Context, v *visit) (string, error) {
	socket, _, err := v.openSession(ctx)
	if err != nil {
		return "", err
	}
	defer socket.CloseNow()
	if err := socket.Write(ctx, websocket.MessageText, []byte(`{"type":"livekit_join"}`)); err != nil {
		return "", fmt.Errorf("join a room: %w", err)
	}
	room, err := expect(ctx, socket, "livekit_room_info")
	if err != nil && strings.Contains(err.Error(), noLive) {
		return "", skip("the deploy has no live video (-c webrtc=true)")
	}
	if err != nil {
		return "", err
	}
	ctx, leave := attend(ctx, socket)
	defer leave()
	var found []string
	for _, by := range []struct {
		name     string
		networks []webrtc.NetworkType
	}{
		{"UDP", []webrtc.NetworkType{webrtc.NetworkTypeUDP4, webrtc.NetworkTypeUDP6}},
		{"TCP", []webrtc.NetworkType{webrtc.NetworkTypeTCP4, webrtc.NetworkTypeTCP6}},
	} {
		began := v.Now()
		at, err := v.reach(ctx, room, by.networks)
		if ctx.Err() != nil {
			return "", fmt.Errorf("live video by %s: %w", by.name, context.Cause(ctx))
		}
		if err != nil {
			return "", fmt.Errorf("live video by %s: %w", by.name, err)
		}
		found = append(found, fmt.Sprintf("%s at %s after %s", by.name, at, round(v.Now().Sub(began))))
	}
	return strings.Join(found, ", "), socket.Close(websocket.StatusNormalClosure, "")
}

// reach joins a room, connects to its media by the networks and leaves. It returns the
// address that answered.
func (v *visit) reach(ctx context.Context, room message, networks []webrtc.NetworkType) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, reachTime)
	defer cancel()
	// Version 0 of the protocol, in which the server offers, is the shorter one.
	signalling, response, err := websocket.Dial(ctx, room.URL+"/rtc?access_token="+url.QueryEscape(room.Token),
		&websocket.DialOptions{HTTPClient: v.http})
	if err != nil {
		return "", fmt.Errorf("open the room's signalling: %w", err)
	}
	if response != nil && response.Body != nil {
		defer response.Body.Close()
	}
	defer signalling.CloseNow()
	signalling.SetReadLimit(maxSignal)
	offer, err := awaitOffer(ctx, signalling)
	if err != nil {
		return "", err
	}
	var settings webrtc.SettingEngine
	settings.SetNetworkTypes(networks)
	settings.SetIncludeLoopbackCandidate(true)
	peer, err := webrtc.NewAPI(webrtc.WithSettingEngine(settings)).NewPeerConnection(webrtc.Configuration{})
	if err != nil {
		return "", err
	}
	defer peer.Close()
	connected := make(chan struct{}, 1)
	peer.OnConnectionStateChange(func(state webrtc.PeerConnectionState) {
		if state == webrtc.PeerConnectionStateConnected {
			connected <- struct{}{}
		}
	})
	if err := answerOffer(ctx, signalling, peer, offer); err != nil {
		return "", err
	}
	select {
	case <-connected:
		return addressOf(peer), nil
	case <-ctx.Done():
		return "", fmt.Errorf("nothing answers at %s", strings.Join(candidatesOf(offer), ", "))
	}
}

// awaitOffer reads messages of a room until it offers its media.
func awaitOffer(ctx context.Context, signalling *websocket.Conn) (string, error) {
	for {
		_, content, err := signalling.Read(ctx)
		if err != nil {
			return "", fmt.Errorf("wait for the room's media: %w", err)
		}
		var told livekit.SignalResponse
		if err := livekit.Unmarshal(content, &told); err != nil {
			return "", fmt.Errorf("read a message of the room: %w", err)
		}
		if told.Leave != nil {
			return "", errors.New("the room sends everybody away")
		}
		if offer := told.Offer; offer != nil {
			return offer.Sdp, nil
		}
	}
}

// answerOffer answers the room's offer.
func answerOffer(ctx context.Context, signalling *websocket.Conn, peer *webrtc.PeerConnection, offer string) error {
	err := peer.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeOffer, SDP: offer})
	if err != nil {
		return fmt.Errorf("take the room's offer: %w", err)
	}
	answer, err := peer.CreateAnswer(nil)
	if err == nil {
		err = peer.SetLocalDescription(answer)
	}
	if err != nil {
		return fmt.Errorf("answer the room's offer: %w", err)
	}
	content := livekit.Marshal(&livekit.SignalRequest{
		Answer: &livekit.SessionDescription{Type: "answer", Sdp: answer.SDP},
	})
	if err := signalling.Write(ctx, websocket.MessageBinary, content); err != nil {
		return fmt.Errorf("answer the room's offer: %w", err)
	}
	return nil
}

// addressOf returns the address of who answered.
func addressOf(peer *webrtc.PeerConnection) string {
	for _, transceiver := range peer.GetTransceivers() {
		transport := transceiver.Receiver().Transport()
		if transport == nil {
			continue
		}
		if pair, err := transport.ICETransport().GetSelectedCandidatePair(); err == nil && pair != nil {
			return fmt.Sprintf("%s:%d", pair.Remote.Address, pair.Remote.Port)
		}
	}
	return "an address that is not told"
}

// candidatesOf returns where an offer says that its media is, such as "203.0.113.7:8082 by
// udp", without repetition.
func candidatesOf(offer string) []string {
	var found []string
	seen := map[string]bool{}
	for line := range strings.Lines(offer) {
		fields := strings.Fields(line) // RFC 8839, section 5.1
		if !strings.HasPrefix(line, "a=candidate:") || len(fields) < 6 {
			continue
		}
		at := fmt.Sprintf("%s:%s by %s", fields[4], fields[5], strings.ToLower(fields[2]))
		if !seen[at] {
			seen[at] = true
			found = append(found, at)
		}
	}
	return found
}
