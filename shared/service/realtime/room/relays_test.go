package room

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/pion/turn/v5"
	"github.com/pion/webrtc/v4"

	"cutroom/shared/service/realtime/livekit"
)

// relayHost is the address from which a test's relay sends media.
const relayHost = "127.0.0.2"

const relaySecret = "a secret of the relay"

// newRelay starts a TURN server that accepts only TLS. trust contains its certificate.
func newRelay(t *testing.T) (url string, trust *x509.CertPool) {
	t.Helper()
	// The test certificate of net/http/httptest is valid for 127.0.0.1.
	https := httptest.NewUnstartedServer(nil)
	https.StartTLS()
	trust = x509.NewCertPool()
	trust.AddCert(https.Certificate())
	certificates := https.TLS.Certificates
	https.Close()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: certificates})
	if err != nil {
		t.Fatal(err)
	}
	server, err := turn.NewServer(turn.ServerConfig{
		Realm: "example.com", AuthHandler: turn.LongTermTURNRESTAuthHandler(relaySecret, nil),
		ListenerConfigs: []turn.ListenerConfig{{
			Listener: listener,
			RelayAddressGenerator: &turn.RelayAddressGeneratorStatic{
				RelayAddress: net.ParseIP(relayHost), Address: relayHost,
			},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	return "turns:" + listener.Addr().String() + "?transport=tcp", trust
}

// guarded is a socket behind a firewall that only lets packets from the relay through.
type guarded struct {
	net.PacketConn
	stopped, passed *atomic.Int64
}

func (g guarded) ReadFrom(b []byte) (int, net.Addr, error) {
	for {
		n, from, err := g.PacketConn.ReadFrom(b)
		if err != nil {
			return n, from, err
		}
		if from.(*net.UDPAddr).IP.String() == relayHost {
			g.passed.Add(1)
			return n, from, nil
		}
		g.stopped.Add(1)
	}
}

type throughTLS struct{ trust *x509.CertPool }

func (d throughTLS) Dial(network, address string) (net.Conn, error) {
	return tls.Dial(network, address, &tls.Config{RootCAs: d.trust})
}

// The client's packets reach the server only through the relay.
func TestRelayForwardsMedia(t *testing.T) {
	url, trust := newRelay(t)
	var stopped, passed atomic.Int64
	w := newWorldAt(t, PortsConfig{
		Address: "127.0.0.1:0", Wrap: func(c net.PacketConn) net.PacketConn { return guarded{c, &stopped, &passed} },
	}, Relays{URLs: []string{url}, Secret: []byte(relaySecret)})
	r, _ := w.mirror()
	servers := w.join(r, livekit.Version0, false).Joined.IceServers
	if len(servers) != 1 || len(servers[0].Urls) != 1 || servers[0].Urls[0] != url {
		t.Fatalf("clients receive %v, want %s", servers, url)
	}
	w.reach = func(s *webrtc.SettingEngine, way *webrtc.Configuration) {
		s.SetICEProxyDialer(throughTLS{trust})
		way.ICEServers = []webrtc.ICEServer{{
			URLs: servers[0].Urls, Username: servers[0].Username, Credential: servers[0].Credential,
		}}
	}
	for name, version := range map[string]livekit.Version{"version 1": livekit.Version1, "version 0": livekit.Version0} {
		t.Run(name, func(t *testing.T) {
			w.T = t
			c := w.join(r, version, true)
			c.Sees(10)
		})
	}
	if stopped.Load() == 0 || passed.Load() == 0 {
		t.Errorf("the firewall stopped %d packets and let %d through", stopped.Load(), passed.Load())
	}
}

func TestDefaultConfigurationHasNoRelay(t *testing.T) {
	w := newWorld(t, nil)
	r, _ := w.mirror()
	if servers := w.join(r, livekit.Version1, false).Joined.IceServers; len(servers) > 0 {
		t.Errorf("clients receive %v", servers)
	}
}
