package room

import (
	"testing"

	"github.com/pion/webrtc/v4"

	"cutroom/shared/service/realtime/livekit"
)

// A client of either version sends a camera and sound, over UDP or TCP, and both come
// back; somebody who watches sees the same.
func TestARoomSendsBack(t *testing.T) {
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
			c.sees(30)
			<-c.sounds
			viewer := w.join(r, of.version, false, of.network)
			viewer.sees(10)
			<-viewer.sounds
			if heard.Load() == 0 {
				t.Error("the room heard nothing of the client")
			}
			r.Close(livekit.DisconnectReason_ROOM_DELETED)
			for _, one := range []*client{c, viewer} {
				if leave := one.left(); leave.GetAction() != livekit.LeaveRequest_DISCONNECT {
					t.Errorf("the server ends with %v", leave)
				}
			}
		})
	}
}
