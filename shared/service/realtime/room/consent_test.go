package room

import (
	"bytes"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pion/ice/v4"
	"github.com/pion/stun/v4"

	"cutroom/shared/service/realtime/livekit"
	"cutroom/shared/service/realtime/livekit/livekittest"
	"cutroom/shared/testkit/await"
)

// nominates sends a request from another address, which the server then uses as the client's. It returns that
// address's socket.
func nominates(t *testing.T, w *world, c *livekittest.Client) (socket net.Conn, sent int) {
	t.Helper()
	socket = w.dial("udp4")
	name, password := w.peer(c)
	request, err := stun.Build(stun.BindingRequest, stun.TransactionID, stun.NewUsername(name),
		ice.UseCandidate(), ice.AttrControlling(1<<63), ice.PriorityAttr(0x7effffff),
		stun.NewShortTermIntegrity(password), stun.Fingerprint)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := socket.Write(request.Raw); err != nil {
		t.Fatal(err)
	}
	return socket, len(request.Raw)
}

// A client could forge a request's source, so an address that has not answered gets no media.
func TestAddressWithoutAnswerGetsNoMedia(t *testing.T) {
	w := newWorld(t, nil)
	r, _ := w.mirror()
	c := w.join(r, livekit.Version1, true)
	c.Sees(1)
	victim, sent := nominates(t, w, c)
	got := 0
	for b, end := make([]byte, maxPacket), time.Now().Add(5*time.Second); time.Now().Before(end); {
		_ = victim.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		n, _ := victim.Read(b)
		got += n
	}
	if got == 0 || got > maxUnproven+3*sent {
		t.Errorf("%d bytes arrive after %d bytes were sent", got, sent)
	}
}

func TestAddressThatAnswersGetsMedia(t *testing.T) {
	w := newWorld(t, nil)
	r, _ := w.mirror()
	c := w.join(r, livekit.Version1, true)
	c.Sees(1)
	socket, _ := nominates(t, w, c)
	_, password := credentials(c.Own.LocalDescription().SDP)
	_ = socket.SetReadDeadline(time.Now().Add(await.Max))
	media := 0
	for b := make([]byte, maxPacket); media < 20*maxUnproven; {
		n, err := socket.Read(b)
		if err != nil {
			t.Fatalf("%d bytes of media arrive: %v", media, err)
		}
		request := &stun.Message{Raw: bytes.Clone(b[:n])}
		switch {
		case !stun.IsMessage(b[:n]):
			media += n
		case request.Decode() == nil && request.Type == stun.BindingRequest:
			_, _ = socket.Write(answerTo(t, request, password))
		}
	}
}

func answerTo(t *testing.T, request *stun.Message, password string) []byte {
	t.Helper()
	answer, err := stun.Build(request, stun.BindingSuccess, stun.NewShortTermIntegrity(password), stun.Fingerprint)
	if err != nil {
		t.Fatal(err)
	}
	return answer.Raw
}

// recorder is a socket that records sent packets. ReadFrom returns the test's packet.
type recorder struct {
	net.PacketConn
	sent   [][]byte
	arrive []byte
	from   net.Addr
}

func (r *recorder) WriteTo(b []byte, _ net.Addr) (int, error) {
	r.sent = append(r.sent, bytes.Clone(b))
	return len(b), nil
}

func (r *recorder) ReadFrom(b []byte) (int, net.Addr, error) { return copy(b, r.arrive), r.from, nil }

func TestConsentExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan struct{})
		bounds, socket := newIntake(func() { close(ended) }), &recorder{}
		bounds.client.Store(&iceUser{"me", "a password"})
		conn := &askingConn{PacketConn: socket, name: "server", bounds: bounds, addresses: map[netip.AddrPort]*proof{}}
		at := &net.UDPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 9}
		media, response := make([]byte, 100), binding(t, "", "")
		media[0] = 128
		// sends sends a packet and returns the server's request, if any, and whether the packet was sent.
		sends := func(packet []byte) (request *stun.Message, whole bool) {
			t.Helper()
			socket.sent = nil
			if _, err := conn.WriteTo(packet, at); err != nil {
				t.Fatal(err)
			}
			for _, one := range socket.sent {
				if bytes.Equal(one, packet) {
					whole = true
				} else if request = (&stun.Message{Raw: one}); request.Decode() != nil {
					t.Fatal("the server sends something else")
				}
			}
			return request, whole
		}
		answers := func(request *stun.Message, from net.Addr, password string) {
			t.Helper()
			socket.arrive, socket.from = answerTo(t, request, password), from
			if _, _, err := conn.ReadFrom(make([]byte, maxPacket)); err != nil {
				t.Fatal(err)
			}
		}
		gets := func(when string, want bool) {
			t.Helper()
			if _, got := sends(media); got != want {
				t.Errorf("%s: media are sent: %v", when, got)
			}
		}
		for range maxUnproven / len(media) {
			gets("at first", true)
		}
		gets("without an answer", false)
		first, whole := sends(response)
		if first == nil || !whole {
			t.Fatal("the server does not ask, or does not respond")
		}
		answers(first, at, "another password")
		gets("after a forged answer", false)
		answers(first, &net.UDPAddr{IP: net.IPv4(192, 0, 2, 2), Port: 9}, "a password")
		gets("after another address answered", false)
		again, _ := sends(response)
		if again == nil || again.TransactionID != first.TransactionID {
			t.Error("a repeated request is not the same")
		}
		answers(first, at, "a password")
		gets("after an answer", true)
		time.Sleep(askAgain)
		second, whole := sends(media)
		if second == nil || !whole || second.TransactionID == first.TransactionID {
			t.Fatal("the server does not ask again")
		}
		time.Sleep(consentTime - askAgain)
		gets("long after the answer", false)
		answers(second, at, "a password")
		gets("after the next answer", true)
		time.Sleep(2 * consentTime)
		third, _ := sends(response)
		time.Sleep(consentTime)
		answers(third, at, "a password")
		gets("after an answer that is late", false)

		for port := range maxAddresses {
			_, _ = conn.WriteTo(response, &net.UDPAddr{IP: net.IPv4(192, 0, 2, 3), Port: 1 + port})
		}
		<-ended
	})
}
