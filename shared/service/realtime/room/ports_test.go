package room

import (
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/pion/webrtc/v4"

	"cutroom/shared/service/realtime/livekit"
)

// The server listens on all addresses. Packets sent to the public one reach the room.
func TestOnlyPublicAddressIsAnnounced(t *testing.T) {
	// This address is reserved for documentation (RFC 5737), so packets to it use the default route.
	ways, err := sourcesOf([]netip.Addr{netip.MustParseAddr("198.51.100.1")})
	if err != nil {
		t.Skipf("the machine has only a loopback address: %v", err)
	}
	public := ways[0]
	w := newWorldAt(t, PortsConfig{Address: ":0", Public: []netip.Addr{public}}, Relays{})
	w.reach = func(s *webrtc.SettingEngine, _ *webrtc.Configuration) {
		s.SetIPFilter(func(ip net.IP) bool { return ip.String() == public.String() })
	}
	for name, network := range map[string]webrtc.NetworkType{"UDP": webrtc.NetworkTypeUDP4, "TCP": webrtc.NetworkTypeTCP4} {
		t.Run(name, func(t *testing.T) {
			w.T = t
			r, _ := w.mirror()
			c := w.join(r, livekit.Version1, true, network)
			c.Sees(10)
			for line := range strings.Lines(c.Own.RemoteDescription().SDP) {
				if fields := strings.Fields(line); strings.HasPrefix(line, "a=candidate:") && fields[4] != public.String() {
					t.Errorf("clients receive %s", line)
				}
			}
		})
	}
}

func TestUnreachablePublicAddressIsRejected(t *testing.T) {
	ports, err := Listen(PortsConfig{Address: ":0", Public: []netip.Addr{netip.MustParseAddr("fe80::1")}})
	if err == nil {
		ports.Close()
		t.Fatal("it is listening")
	}
	if !strings.Contains(err.Error(), "fe80::1") {
		t.Errorf("the error is %v", err)
	}
}
