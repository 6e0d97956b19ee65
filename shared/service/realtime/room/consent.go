package room

import (
	"bytes"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/pion/ice/v4"
	"github.com/pion/stun/v4"
)

const (
	// maxUnproven limits the bytes of media and of the handshake that an address gets before it has
	// answered a request.
	maxUnproven = 1500
	// An address is asked again after askAgain. An answer is valid for consentTime (RFC 7675, section 5.1).
	askAgain, consentTime = 5 * time.Second, 30 * time.Second
	// maxAddresses limits the addresses from which a client connects with the same ICE name.
	maxAddresses = 256
	// checkPriority is the priority of the server's requests. Clients do not use it.
	checkPriority = 110 << 24
)

type iceUser struct{ name, password string }

// iceUserOf returns the first ICE user name and password in a session description.
func iceUserOf(description string) (c iceUser) {
	for line := range strings.Lines(description) {
		line = strings.TrimRight(line, "\r\n")
		if name, is := strings.CutPrefix(line, "a=ice-ufrag:"); is && c.name == "" {
			c.name = name
		}
		if password, is := strings.CutPrefix(line, "a=ice-pwd:"); is && c.password == "" {
			c.password = password
		}
	}
	return c
}

// askingConn asks each address whether it wants packets, and sends little until it answers. A client can forge
// the sources of its packets, and the library would send media to every forged address.
type askingConn struct {
	net.PacketConn
	name   string // the server's ICE user name
	bounds *intake

	mu        sync.Mutex
	addresses map[netip.AddrPort]*proof
}

// proof records whether an address has agreed to receive packets.
type proof struct {
	unproven int // bytes sent without a valid answer
	// request is the STUN request for the address. made is when it was created. asked is when it was last sent.
	request               *stun.Message
	made, asked, answered time.Time
}

func (p *proof) valid(now time.Time) bool {
	return !p.answered.IsZero() && now.Sub(p.answered) < consentTime
}

func (c *askingConn) ReadFrom(b []byte) (int, net.Addr, error) {
	n, from, err := c.PacketConn.ReadFrom(b)
	if err == nil && isSTUN(b[:n]) {
		c.takeAnswer(b[:n], from)
	}
	return n, from, err
}

// isSTUN reports whether a packet is a STUN message, and not media whose timestamp looks like one (RFC 7983, section
// 7).
func isSTUN(packet []byte) bool { return stun.IsMessage(packet) && packet[0] < 4 }

func (c *askingConn) takeAnswer(packet []byte, from net.Addr) {
	answer, client := &stun.Message{Raw: bytes.Clone(packet)}, c.bounds.client.Load()
	if client == nil || answer.Decode() != nil || answer.Type != stun.BindingSuccess {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	p, now := c.addresses[addressOf(from)], time.Now()
	if p == nil || p.request == nil || p.request.TransactionID != answer.TransactionID || now.Sub(p.made) >= consentTime {
		return
	}
	if stun.NewShortTermIntegrity(client.password).Check(answer) == nil {
		p.request, p.answered = nil, now
	}
}

// WriteTo drops packets to addresses that have not agreed to receive them.
func (c *askingConn) WriteTo(b []byte, to net.Addr) (int, error) {
	request, allowed := c.decide(b, addressOf(to))
	if request != nil {
		// Ignore errors, because a lost request is sent again.
		_, _ = c.PacketConn.WriteTo(request.Raw, to)
	}
	if !allowed {
		return len(b), nil
	}
	return c.PacketConn.WriteTo(b, to)
}

// decide returns the request to send before a packet, if any, and whether the packet may be sent. A
// request precedes each answer to an unproven address, so an address gets few more bytes than it sends.
func (c *askingConn) decide(packet []byte, to netip.AddrPort) (request *stun.Message, allowed bool) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.addresses[to]
	if p == nil {
		if len(c.addresses) == maxAddresses {
			go c.bounds.overflow()
			return nil, false
		}
		p = &proof{}
		c.addresses[to] = p
	}
	if p.valid(now) {
		if now.Sub(p.asked) < askAgain {
			return nil, true
		}
		return c.ask(p, now), true
	}
	if isSTUN(packet) {
		return c.ask(p, now), true
	}
	p.unproven += len(packet)
	return nil, p.unproven <= maxUnproven
}

func (c *askingConn) ask(p *proof, now time.Time) *stun.Message {
	client := c.bounds.client.Load()
	if client == nil {
		return nil
	}
	if p.request == nil || now.Sub(p.made) >= consentTime {
		request, err := stun.Build(stun.BindingRequest, stun.TransactionID, stun.NewUsername(client.name+":"+c.name),
			ice.AttrControlled(0), ice.PriorityAttr(checkPriority),
			stun.NewShortTermIntegrity(client.password), stun.Fingerprint)
		if err != nil {
			return nil
		}
		p.request, p.made = request, now
	}
	p.asked = now
	return p.request
}

func addressOf(a net.Addr) netip.AddrPort {
	at := a.(*net.UDPAddr).AddrPort()
	return netip.AddrPortFrom(at.Addr().Unmap(), at.Port())
}
