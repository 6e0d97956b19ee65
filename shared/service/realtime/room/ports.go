package room

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/pion/ice/v4"
)

const (
	maxMediaConnections = 4096
	// maxFromAddress limits the connections from one address (IPv6: a /64 network), which many clients may share, and
	// maxFromSite those from a /48 network.
	maxFromAddress, maxFromSite = 256, 1024
	// strangerTime is how long a connection may exist without a participant.
	strangerTime = 5 * time.Second
	// udpBuffer is the size in bytes of the socket buffer that all sessions share, in each direction.
	udpBuffer = 4 << 20
	// maxFromPeer limits a peer's TCP connections. Browsers open one for each pair of addresses.
	maxFromPeer = 16
	// A TCP connection is closed if its client reads nothing for stallTime.
	stallTime = 20 * time.Second
	// tcpBuffer limits the bytes queued for a slow TCP client. A separate limit of the same size applies to the bytes
	// that the system queues. It is half a second of video.
	tcpBuffer = 128 << 10
	// maxWaiting is the maximum number of packets that wait for a peer.
	maxWaiting = 512
	// anyPortTries limits how often to try to listen on a port chosen by the system.
	anyPortTries = 20
)

// Ports contains the UDP and the TCP port for the media of all sessions. Both have the same number.
type Ports struct {
	// public lists the addresses that are announced to clients instead of the machine's own, if any.
	public []netip.Addr

	addresses []netip.Addr
	number    int
	udp       *ice.MultiUDPMuxDefault
	tcp       *ice.TCPMuxDefault
	listener  *fairListener
	logs      *logs
}

type PortsConfig struct {
	// Address is a host and port. An empty host means all of the machine's addresses.
	Address string
	Public  []netip.Addr
	// Wrap wraps the UDP sockets in tests. It may be nil.
	Wrap   func(net.PacketConn) net.PacketConn
	Logger *slog.Logger
}

func Listen(c PortsConfig) (*Ports, error) {
	_, number, _ := net.SplitHostPort(c.Address)
	for try := 1; ; try++ {
		p, err := listen(c)
		// A port that is free for TCP may be in use for UDP. If the system chooses the port, try another.
		if err == nil || number != "0" || try == anyPortTries || !errors.Is(err, syscall.EADDRINUSE) {
			return p, err
		}
	}
}

func listen(c PortsConfig) (*Ports, error) {
	listener, err := net.Listen("tcp", c.Address)
	if err != nil {
		return nil, err
	}
	p := &Ports{public: c.Public, logs: &logs{c.Logger}}
	p.number = listener.Addr().(*net.TCPAddr).Port
	if p.addresses, err = addressesOf(listener.Addr(), c.Public); err == nil {
		err = p.listenUDP(c.Wrap)
	}
	if err != nil {
		listener.Close()
		return nil, err
	}
	p.listener = newFairListener(listener)
	p.tcp = ice.NewTCPMuxDefault(ice.TCPMuxParams{
		Listener: p.listener, Logger: p.logs.NewLogger("tcp"),
		ReadBufferSize: 16, WriteBufferSize: tcpBuffer,
		FirstStunBindTimeout: strangerTime, AliveDurationForConnFromStun: strangerTime,
	})
	return p, nil
}

// listenUDP opens a socket for each address, so that replies come from the address that the client uses.
func (p *Ports) listenUDP(wrap func(net.PacketConn) net.PacketConn) error {
	var muxes []ice.UDPMux
	for _, address := range p.addresses {
		socket, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(address, uint16(p.number))))
		if err != nil {
			for _, mux := range muxes {
				err = errors.Join(err, mux.Close())
			}
			return err
		}
		// Ignore errors: the system may allow only smaller buffers.
		_, _ = socket.SetReadBuffer(udpBuffer), socket.SetWriteBuffer(udpBuffer)
		var conn net.PacketConn = socket
		if wrap != nil {
			conn = wrap(socket)
		}
		muxes = append(muxes, ice.NewUDPMuxDefault(ice.UDPMuxParams{Logger: p.logs.NewLogger("udp"), UDPConn: conn}))
	}
	p.udp = ice.NewMultiUDPMuxDefault(muxes...)
	return nil
}

// quietMux limits the packets that wait for a peer. The library would queue any number.
type quietMux struct {
	*ice.MultiUDPMuxDefault
	bounds *intake
}

// quietTCP is like quietMux, but for TCP, where the library itself limits the waiting packets to ReadBufferSize.
type quietTCP struct {
	*ice.TCPMuxDefault
	bounds   *intake
	listener *fairListener
}

// quietConn drops the packets that the intake rejects.
type quietConn struct {
	net.PacketConn
	bounds *intake
}

func (m quietTCP) GetConnByUfrag(name string, isIPv6 bool, local net.IP) (net.PacketConn, error) {
	conn, err := m.TCPMuxDefault.GetConnByUfrag(name, isIPv6, local)
	if err != nil {
		return nil, err
	}
	m.listener.know(name, true)
	return &quietConn{conn, m.bounds}, nil
}

func (m quietTCP) RemoveConnByUfrag(name string) {
	m.listener.know(name, false)
	m.TCPMuxDefault.RemoveConnByUfrag(name)
}

func (m quietMux) GetConn(name string, at net.Addr) (net.PacketConn, error) {
	conn, err := m.MultiUDPMuxDefault.GetConn(name, at)
	if err != nil {
		return nil, err
	}
	queue := &queueConn{PacketConn: &quietConn{conn, m.bounds}, waiting: make(chan arrivedPacket, maxWaiting)}
	go queue.fill()
	return &askingConn{PacketConn: queue, name: name, bounds: m.bounds, addresses: map[netip.AddrPort]*proof{}}, nil
}

func (c *quietConn) ReadFrom(b []byte) (int, net.Addr, error) {
	for {
		n, from, err := c.PacketConn.ReadFrom(b)
		if err != nil && from != nil {
			continue // one of the peer's TCP connections has ended
		}
		if err != nil || !c.bounds.drops(b[:n]) {
			return n, from, err
		}
	}
}

// queueConn reads packets as they arrive. It drops packets that arrive before the first read, or when maxWaiting
// packets wait.
type queueConn struct {
	net.PacketConn
	reads   atomic.Bool
	waiting chan arrivedPacket
}

type arrivedPacket struct {
	content []byte
	from    net.Addr
}

func (c *queueConn) fill() {
	defer close(c.waiting)
	b := make([]byte, maxPacket)
	for {
		n, from, err := c.PacketConn.ReadFrom(b)
		if err != nil && !errors.Is(err, io.ErrShortBuffer) {
			return
		}
		if err != nil || !c.reads.Load() {
			continue
		}
		select {
		case c.waiting <- arrivedPacket{bytes.Clone(b[:n]), from}:
		default:
		}
	}
}

func (c *queueConn) ReadFrom(b []byte) (int, net.Addr, error) {
	c.reads.Store(true)
	packet, open := <-c.waiting
	if !open {
		return 0, nil, io.EOF
	}
	return copy(b, packet.content), packet.from, nil
}

// addressesOf returns the addresses that a listener is bound to. If these are all of the machine's, it omits
// link-local ones, because clients cannot know their zone. If public addresses are configured, it returns one local
// address for each of them, from which packets to the public address are sent.
func addressesOf(listens net.Addr, public []netip.Addr) (addresses []netip.Addr, err error) {
	at := listens.(*net.TCPAddr).AddrPort().Addr().Unmap()
	if !at.IsUnspecified() {
		return []netip.Addr{at}, nil
	}
	if len(public) > 0 {
		return sourcesOf(public)
	}
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	for _, one := range all {
		prefix, err := netip.ParsePrefix(one.String())
		if err != nil || prefix.Addr().IsLinkLocalUnicast() {
			continue
		}
		addresses = append(addresses, prefix.Addr().Unmap())
	}
	if len(addresses) == 0 {
		return nil, fmt.Errorf("%s: the machine has no address", listens)
	}
	return addresses, nil
}

// sourcesOf returns the machine's source addresses for packets to the given addresses, without
// duplicates. It fails if an address is unreachable. It does not send anything.
func sourcesOf(others []netip.Addr) (sources []netip.Addr, err error) {
	const discard = 9 // any port works
	for _, other := range others {
		way, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(other, discard)))
		if err != nil {
			return nil, fmt.Errorf("this machine cannot be reached at the public address %s: %w", other, err)
		}
		source := way.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap()
		_ = way.Close()
		if !slices.Contains(sources, source) {
			sources = append(sources, source)
		}
	}
	return sources, nil
}

func (p *Ports) Address() string { return p.tcp.LocalAddr().String() }

func (p *Ports) at(ip net.IP) bool {
	address, ok := netip.AddrFromSlice(ip)
	return ok && slices.Contains(p.addresses, address.Unmap())
}

func (p *Ports) Close() error { return errors.Join(p.udp.Close(), p.tcp.Close()) }
