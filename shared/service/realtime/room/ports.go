package room

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"github.com/pion/ice/v4"
	"golang.org/x/net/netutil"
)

const (
	// maxMediaConnections is how many connections the TCP port has at once.
	maxMediaConnections = 4096
	// maxFromAddress is how many of them may come from one address, behind which there may be
	// many clients. Each has one or two.
	maxFromAddress = 256
	// strangerTime is how long one may stay open that belongs to no participant.
	strangerTime = 10 * time.Second
	// udpBuffer is how many bytes the system buffers each way for all sessions.
	udpBuffer = 4 << 20
	// tcpBuffer is how many bytes wait for a client that is slow to read.
	tcpBuffer = 1 << 20
	// anyPortTries is how many ports of the system's choice are tried.
	anyPortTries = 20
)

// Ports are the UDP port and the TCP port, of the same number, that the media of all
// sessions goes through.
type Ports struct {
	// Public are the addresses that clients are told, in place of those of the machine's
	// interfaces, if there are any.
	public []netip.Addr

	addresses []netip.Addr
	number    int
	udp       *ice.MultiUDPMuxDefault
	tcp       *ice.TCPMuxDefault
	logs      *logs
}

// PortsConfig says where media is received.
type PortsConfig struct {
	// Address is a host and a port; without a host it is every address of the machine.
	Address string
	// Public are addresses that clients are told in place of the machine's own.
	Public []netip.Addr
	// Wrap wraps the UDP sockets, in tests; nil wraps none.
	Wrap   func(net.PacketConn) net.PacketConn
	Logger *slog.Logger
}

// Listen opens the ports.
//
// Errors: those of listening, which name the address.
func Listen(c PortsConfig) (*Ports, error) {
	_, number, _ := net.SplitHostPort(c.Address)
	for try := 1; ; try++ {
		p, err := listen(c)
		// A port that the system chooses is free by TCP, and may be taken by UDP.
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
	p := &Ports{public: c.Public, logs: newLogs(c.Logger)}
	p.number = listener.Addr().(*net.TCPAddr).Port
	if p.addresses, err = addressesOf(listener.Addr(), c.Public); err == nil {
		err = p.listenUDP(c.Wrap)
	}
	if err != nil {
		listener.Close()
		return nil, err
	}
	p.tcp = ice.NewTCPMuxDefault(ice.TCPMuxParams{
		Listener: newFairListener(netutil.LimitListener(listener, maxMediaConnections)), Logger: p.logs.NewLogger("tcp"),
		ReadBufferSize: 64, WriteBufferSize: tcpBuffer,
		FirstStunBindTimeout: strangerTime, AliveDurationForConnFromStun: strangerTime,
	})
	return p, nil
}

// listenUDP opens a socket at each address, so that answers come from the address that a
// client sent to.
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
		// The system may allow less.
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

// addressesOf returns the addresses that a listener is at: its own, or the machine's.
// Those of a link alone are left out, as clients cannot tell of which. Where clients are
// told public addresses, those are left out too that packets from there do not come to:
// two addresses that are told as the same one would be mistaken for each other.
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

// sourcesOf returns the machine's addresses that packets to others go out by, without
// repetition. Nothing is sent.
//
// Errors: no way leads to an address.
func sourcesOf(others []netip.Addr) (sources []netip.Addr, err error) {
	const discard = 9 // any port will do
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

// Address returns where both ports are.
func (p *Ports) Address() string { return p.tcp.LocalAddr().String() }

// at reports whether the ports are open at an address.
func (p *Ports) at(ip net.IP) bool {
	address, ok := netip.AddrFromSlice(ip)
	return ok && slices.Contains(p.addresses, address.Unmap())
}

// Close closes the ports.
func (p *Ports) Close() error { return errors.Join(p.udp.Close(), p.tcp.Close()) }
