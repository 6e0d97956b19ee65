package room

import (
	"runtime"
	"strings"
	"testing"
	"weak"

	"github.com/pion/rtp"
	"github.com/pion/webrtc/v4"

	"cutroom/shared/service/realtime/livekit"
	"cutroom/shared/service/realtime/livekit/livekittest"
	"cutroom/shared/testkit/await"
)

func TestRoomReturnsMedia(t *testing.T) {
	for name, of := range map[string]struct {
		version livekit.Version
		network webrtc.NetworkType
	}{
		"version 1": {livekit.Version1, webrtc.NetworkTypeUDP4},
		"version 0": {livekit.Version0, webrtc.NetworkTypeUDP4},
		"over TCP":  {livekit.Version1, webrtc.NetworkTypeTCP4},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			r, heard := w.mirror()
			c := w.join(r, of.version, true, of.network)
			c.Sees(30)
			await.Receive(t, "c.Heard", c.Heard)
			viewer := w.join(r, of.version, false, of.network)
			viewer.Sees(10)
			await.Receive(t, "viewer.Heard", viewer.Heard)
			if heard.Load() == 0 {
				t.Error("the room received nothing from the client")
			}
			r.Close(livekit.ReasonRoomDeleted)
			for _, one := range []*livekittest.Client{c, viewer} {
				if leave := one.Left(); leave.Action != livekit.ActionDisconnect {
					t.Errorf("the server ends with %v", leave)
				}
			}
		})
	}
}

// A participant may still reconnect with its token after the token has expired. The session's own client may also join
// again.
func TestTokenAdmitsOnlyToItsRoom(t *testing.T) {
	w := newWorld(t, nil)
	r, _ := w.mirror()
	other, _ := w.mirror()
	config := w.as(r, livekit.Version1, true)
	refused := func(what string, c livekittest.Config) {
		t.Helper()
		if err := livekittest.New(t, c).TryDial(""); err == nil || !strings.Contains(err.Error(), "401") {
			t.Errorf("%s: %v", what, err)
		}
	}
	elsewhere, forged, nobody := config, config, config
	elsewhere.URL = w.http.URL + Path + other.Name()
	forged.Token = livekittest.Forged(config.Token)
	nobody.Token = ""
	refused("a token of another room", elsewhere)
	refused("a forged token", forged)
	refused("no token", nobody)

	c, watching := livekittest.Join(t, config), w.as(r, livekit.Version1, false)
	viewer := livekittest.Join(t, watching)
	viewer.Sees(5)
	w.later.Store(int64(2 * tokenTime))
	refused("a token that has expired", w.expired(r))
	refused("somebody else's token, again", watching)
	viewer.Drop()
	viewer.Resume()
	viewer.Sees(5)
	config.Camera = numbered()
	again := livekittest.Join(t, config)
	c.Left()
	again.Sees(5)
}

func TestSecondUseOfTokenReplacesFirst(t *testing.T) {
	w := newWorld(t, nil)
	r, _ := w.mirror()
	config := w.as(r, livekit.Version1, true)
	first := livekittest.Join(t, config)
	first.Sees(5)
	config.Camera = numbered()
	second := livekittest.Join(t, config)
	if leave := first.Left(); leave.Reason != livekit.ReasonDuplicateIdentity {
		t.Errorf("the first client receives %v", leave)
	}
	second.Sees(5)
}

func TestViewersAreLimited(t *testing.T) {
	w := newWorld(t, nil)
	r, _ := w.mirror()
	w.join(r, livekit.Version1, true).Sees(1)
	var viewers []*livekittest.Client
	for range maxViewers {
		viewers = append(viewers, w.join(r, livekit.Version1, false))
	}
	tooMany := livekittest.New(t, w.as(r, livekit.Version1, false))
	tooMany.Dial("")
	if leave := tooMany.Left(); leave.Reason != livekit.ReasonJoinFailure {
		t.Errorf("one client too many receives %v", leave)
	}
	for _, viewer := range viewers {
		viewer.Sees(3)
	}
	viewers[0].Say(&livekit.SignalRequest{Leave: &livekit.LeaveRequest{}})
	viewers[0].Left()
	w.join(r, livekit.Version1, false).Sees(3)
	viewers[1].Sees(3)
}

// Only the newest camera's frames are assembled, even if the client does not remove the others.
func TestTrackCanBeReplaced(t *testing.T) {
	w := newWorld(t, nil)
	r, _ := w.mirror()
	c := w.join(r, livekit.Version1, true)
	for range 6 {
		c.Sees(3)
		c.Unpublish()
		for len(c.Seen) > 0 {
			await.Receive(t, "c.Seen", c.Seen)
		}
		c.Publish()
	}
	c.Sees(10)
	r.mu.Lock()
	old := weak.Make(r.source.assembler)
	r.mu.Unlock()
	camera, err := webrtc.NewTrackLocalStaticRTP(r.video.Codec(), "second", "mine")
	if err == nil {
		sends := webrtc.RTPTransceiverInit{Direction: webrtc.RTPTransceiverDirectionSendonly}
		_, err = c.Own.AddTransceiverFromTrack(camera, sends)
	}
	if err != nil {
		t.Fatal(err)
	}
	c.Negotiate(false)
	await.Until(t, "the old camera's assembler is released", func() bool {
		_ = camera.WriteRTP(&rtp.Packet{Header: rtp.Header{Version: 2}, Payload: []byte{16, 0}})
		runtime.GC()
		return old.Value() == nil
	})
}

// A participant that stays away too long is forgotten.
func TestFailedResumptionRejoins(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	r, _ := w.mirror()
	c := w.join(r, livekit.Version1, true)
	c.Sees(1)
	resumes := func(what, token string, sid string, action livekit.LeaveAction) {
		t.Helper()
		one := livekittest.New(t, livekittest.Config{URL: c.URL, Token: token, Version: livekit.Version1})
		one.Dial("&join_request=" + livekittest.Wrapped(&livekit.JoinRequest{Reconnect: true, ParticipantSid: sid}))
		if leave := one.Left(); leave.Action != action {
			t.Errorf("%s receives %v", what, leave)
		}
	}
	sid := c.Joined.Participant.Sid
	resumes("another name", c.Token, "PA_1", livekit.ActionReconnect)
	resumes("a viewer's token", w.token(r, false), sid, livekit.ActionReconnect)
	c.Sees(1)
	c.Drop()
	await.Until(t, "the participant is forgotten", func() bool {
		return r.find(c.Joined.Participant.Identity, sid) == nil
	})
	resumes("a participant that was away for too long", c.Token, sid, livekit.ActionReconnect)
	r.Close(livekit.ReasonRoomDeleted)
	resumes("a participant of a closed room", c.Token, sid, livekit.ActionDisconnect)
}
