package gateway_test

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

type nameServer struct {
	*net.Resolver
	mu             sync.Mutex
	zone           zone
	asked, overTCP int
	gone           sync.WaitGroup
}

// Names in a zone have no trailing dot.
type zone struct {
	// If code is not success, every query gets it as the answer.
	code dnsmessage.RCode
	// late, if set, delays all answers until it is closed.
	late <-chan struct{}
	// noTCP closes TCP connections without an answer.
	noTCP     bool
	ttl       uint32
	addresses map[string][]netip.Addr
	aliases   map[string]string
	services  map[string][]dnsmessage.SRVResource
}

const plainDNS = 512

func newNameServer(t *testing.T) *nameServer {
	t.Helper()
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	must(t, err)
	life, end := context.WithCancel(context.Background())
	n := &nameServer{}
	n.Resolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		address := udp.LocalAddr()
		if network == "tcp" {
			address = tcp.Addr()
		}
		return (&net.Dialer{}).DialContext(ctx, network, address.String())
	}}
	n.gone.Go(func() { n.serveUDP(life, udp) })
	n.gone.Go(func() { n.serveTCP(life, tcp) })
	t.Cleanup(func() {
		end()
		udp.Close()
		tcp.Close()
		n.gone.Wait()
	})
	return n
}

// now replaces the server's records. It returns the number of queries so far.
func (n *nameServer) now(z zone) (asked int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.zone = z
	return n.asked
}

func (n *nameServer) questions() (all, overTCP int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.asked, n.overTCP
}

func (n *nameServer) serveUDP(life context.Context, conn net.PacketConn) {
	for {
		packet := make([]byte, plainDNS)
		size, from, err := conn.ReadFrom(packet)
		if err != nil {
			return
		}
		n.gone.Go(func() {
			if answer := n.answer(life, packet[:size], false); answer != nil {
				_, _ = conn.WriteTo(answer, from) // the sender may have disconnected
			}
		})
	}
}

func (n *nameServer) serveTCP(life context.Context, listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		n.gone.Go(func() {
			defer conn.Close()
			size := make([]byte, 2)
			if _, err := io.ReadFull(conn, size); err != nil {
				return
			}
			query := make([]byte, binary.BigEndian.Uint16(size))
			if _, err := io.ReadFull(conn, query); err != nil {
				return
			}
			if answer := n.answer(life, query, true); answer != nil {
				_, _ = conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...))
			}
		})
	}
}

func (n *nameServer) answer(life context.Context, query []byte, tcp bool) []byte {
	var parser dnsmessage.Parser
	header, err := parser.Start(query)
	if err != nil {
		return nil
	}
	question, err := parser.Question()
	if err != nil {
		return nil
	}
	n.mu.Lock()
	n.asked++
	if tcp {
		n.overTCP++
	}
	z := n.zone
	n.mu.Unlock()
	if tcp && z.noTCP {
		return nil
	}
	if z.late != nil {
		select {
		case <-z.late:
		case <-life.Done():
			return nil
		}
	}
	reply := dnsmessage.Message{
		Header: dnsmessage.Header{
			ID: header.ID, Response: true, Authoritative: true, RecursionDesired: header.RecursionDesired,
			RecursionAvailable: true, RCode: z.code,
		},
		Questions: []dnsmessage.Question{question},
	}
	if z.code == dnsmessage.RCodeSuccess {
		z.fill(&reply, question)
	}
	packed, err := reply.Pack()
	if err == nil && !tcp && len(packed) > plainDNS {
		reply.Truncated, reply.Answers = true, nil
		packed, err = reply.Pack()
	}
	if err != nil {
		return nil
	}
	return packed
}

func (z zone) fill(reply *dnsmessage.Message, question dnsmessage.Question) {
	name := strings.TrimSuffix(strings.ToLower(question.Name.String()), ".")
	known := false
	add := func(kind dnsmessage.Type, body dnsmessage.ResourceBody) {
		reply.Answers = append(reply.Answers, dnsmessage.Resource{
			Header: dnsmessage.ResourceHeader{
				Name: dnsmessage.MustNewName(name + "."), Type: kind, Class: dnsmessage.ClassINET, TTL: z.ttl,
			},
			Body: body,
		})
	}
	for range 8 { // limited, because an alias may point to itself
		alias, ok := z.aliases[name]
		if !ok {
			break
		}
		known = true
		add(dnsmessage.TypeCNAME, &dnsmessage.CNAMEResource{CNAME: dnsmessage.MustNewName(alias + ".")})
		name = alias
	}
	for _, address := range z.addresses[name] {
		known = true
		if address.Is4() && question.Type == dnsmessage.TypeA {
			add(question.Type, &dnsmessage.AResource{A: address.As4()})
		}
		if address.Is6() && question.Type == dnsmessage.TypeAAAA {
			add(question.Type, &dnsmessage.AAAAResource{AAAA: address.As16()})
		}
	}
	for _, service := range z.services[name] {
		known = true
		if question.Type == dnsmessage.TypeSRV {
			add(question.Type, &service)
		}
	}
	if !known {
		reply.RCode = dnsmessage.RCodeNameError
	}
}
