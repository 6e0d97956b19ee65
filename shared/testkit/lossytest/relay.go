package lossytest

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"

	"cutroom/shared/testkit/await"
)

const maxPacket = 64 << 10

// Relay forwards UDP packets and TCP connections between clients that call its address and a
// server. A server that announces an address to its clients, such as a WebRTC server, must
// announce the address of the relay: for example 127.0.0.2 with the same port, if the server is
// at 127.0.0.1.
type Relay struct {
	to       string
	socket   *net.UDPConn
	listener net.Listener
	up, down *way
	work     sync.WaitGroup

	mu sync.Mutex
	// clients maps clients' addresses to sockets to the server.
	clients map[netip.AddrPort]*net.UDPConn
	streams map[net.Conn]bool
	cut     bool
	closed  bool
}

// NewRelay returns a relay that listens at an address with UDP and TCP, and calls the server at
// another address. It passes everything until Set or Cut is called.
func NewRelay(address, server string, seed uint64) (*Relay, error) {
	listener, socket, err := listen(address)
	// A port that is free for TCP may be in use for UDP.
	for try := 0; err != nil && strings.HasSuffix(address, ":0") && try < 20; try++ {
		listener, socket, err = listen(address)
	}
	if err != nil {
		return nil, err
	}
	r := &Relay{
		to: server, socket: socket, listener: listener, up: newWay(seed, 1), down: newWay(seed, 2),
		clients: map[netip.AddrPort]*net.UDPConn{}, streams: map[net.Conn]bool{},
	}
	r.work.Go(r.receive)
	r.work.Go(r.accept)
	return r, nil
}

// listen listens at an address with TCP and, at the same port, with UDP.
func listen(address string) (net.Listener, *net.UDPConn, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, nil, err
	}
	at, err := net.ResolveUDPAddr("udp", listener.Addr().String())
	if err != nil {
		return nil, nil, errors.Join(err, listener.Close())
	}
	socket, err := net.ListenUDP("udp", at)
	if err != nil {
		return nil, nil, errors.Join(err, listener.Close())
	}
	return listener, socket, nil
}

func (r *Relay) Addr() string { return r.listener.Addr().String() }

// Set sets the faults for later UDP packets: up for packets to the server, and down for packets to
// its clients. Packets in transit are not affected.
func (r *Relay) Set(up, down Faults) {
	r.up.set(up)
	r.down.set(down)
}

// Counts returns the counts of UDP packets so far.
func (r *Relay) Counts() (up, down Count) { return r.up.counted(), r.down.counted() }

// Cut(true) closes all TCP connections, and every new connection until Cut(false).
func (r *Relay) Cut(cut bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cut = cut
	if cut {
		r.endStreams()
	}
}

func (r *Relay) endStreams() {
	for stream := range r.streams {
		stream.Close()
	}
}

func (r *Relay) receive() {
	buffer := make([]byte, maxPacket)
	for {
		n, from, err := r.socket.ReadFromUDPAddrPort(buffer)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // a client has gone
		}
		if server := r.client(from); server != nil {
			// As on a network, a packet that cannot be sent is lost.
			r.up.carry(buffer[:n], func(packet []byte) { _, _ = server.Write(packet) })
		}
	}
}

// client returns the socket to the server for a client, or nil.
func (r *Relay) client(from netip.AddrPort) *net.UDPConn {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.clients[from]; known != nil || r.closed {
		return known
	}
	at, err := net.ResolveUDPAddr("udp", r.to)
	if err != nil {
		return nil
	}
	server, err := net.DialUDP("udp", nil, at)
	if err != nil {
		return nil
	}
	r.clients[from] = server
	r.work.Go(func() { r.answer(server, from) })
	return server
}

// answer forwards the server's packets to a client.
func (r *Relay) answer(server *net.UDPConn, to netip.AddrPort) {
	buffer := make([]byte, maxPacket)
	for {
		n, err := server.Read(buffer)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // the server is not listening now
		}
		r.down.carry(buffer[:n], func(packet []byte) { _, _ = r.socket.WriteToUDPAddrPort(packet, to) })
	}
}

func (r *Relay) accept() {
	for {
		client, err := r.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.DialTimeout("tcp", r.to, await.Max)
		if err != nil {
			client.Close()
			continue
		}
		r.mu.Lock()
		r.streams[client], r.streams[server] = true, true
		if r.cut || r.closed {
			r.endStreams()
		}
		r.mu.Unlock()
		r.work.Go(func() { r.pipe(client, server) })
		r.work.Go(func() { r.pipe(server, client) })
	}
}

// pipe copies one side of a connection to the other until one of them closes.
func (r *Relay) pipe(from, to net.Conn) {
	_, _ = io.Copy(to, from) // ends when one side closes
	from.Close()
	to.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.streams, from)
	delete(r.streams, to)
}

func (r *Relay) Close() error {
	r.up.close()
	r.down.close()
	r.mu.Lock()
	r.closed = true
	r.endStreams()
	for _, server := range r.clients {
		server.Close()
	}
	r.mu.Unlock()
	err := errors.Join(r.listener.Close(), r.socket.Close())
	r.work.Wait()
	return err
}
