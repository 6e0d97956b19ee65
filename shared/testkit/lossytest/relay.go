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

// Relay forwards UDP packets and TCP connections between clients, which connect to its address, and a server. A
// server that announces an address to its clients, such as a WebRTC server, must announce the relay's address. If the
// server is at 127.0.0.1, this is for example 127.0.0.2 with the same port.
type Relay struct {
	to       string
	socket   *net.UDPConn
	listener net.Listener
	up, down *way
	work     sync.WaitGroup

	mu sync.Mutex
	// clients maps client addresses to the sockets that the relay uses to reach the server.
	clients map[netip.AddrPort]*net.UDPConn
	streams map[net.Conn]bool
	cut     bool
	closed  bool
}

// NewRelay returns a relay that listens on address for UDP and TCP and forwards to the server's
// address. Until Set or Cut is called, there are no faults.
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

// listen listens on an address for TCP and, on the same port, for UDP.
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

// Set sets the faults of future UDP packets. up applies to packets to the server. down applies to packets to the
// server's clients. Packets in transit are not affected.
func (r *Relay) Set(up, down Faults) {
	r.up.set(up)
	r.down.set(down)
}

// Counts returns the counts of UDP packets so far, to the server and to its clients.
func (r *Relay) Counts() (up, down Count) { return r.up.counted(), r.down.counted() }

// Cut(true) closes all TCP connections, and each new connection until Cut(false) is called.
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
			continue // a client is gone
		}
		if server := r.client(from); server != nil {
			// A packet that cannot be sent is lost, as on a real network.
			r.up.carry(buffer[:n], func(packet []byte) { _, _ = server.Write(packet) })
		}
	}
}

// client returns the socket that a client's packets to the server use, or nil on failure.
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
			continue // the server is not listening yet or anymore
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

// pipe copies from one connection to the other until one of them is closed.
func (r *Relay) pipe(from, to net.Conn) {
	_, _ = io.Copy(to, from) // ends when either side is closed
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
