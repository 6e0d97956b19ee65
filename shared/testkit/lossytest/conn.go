package lossytest

import (
	"net"
	"sync"
)

// Conn is a socket on a network that is bad in both directions. It does not support read deadlines.
type Conn struct {
	net.PacketConn
	out, in *way
	// arrived holds packets that were received. failed is closed after the last packet.
	arrived chan arrival
	failed  chan struct{}
	err     error
	closing sync.Once
}

type arrival struct {
	packet []byte
	from   net.Addr
}

// NewConn returns a socket without faults, which Set can change later. It takes ownership of the wrapped socket.
func NewConn(socket net.PacketConn, seed uint64) *Conn {
	c := &Conn{
		PacketConn: socket, out: newWay(seed, 1), in: newWay(seed, 2),
		arrived: make(chan arrival, 4096), failed: make(chan struct{}),
	}
	go c.receive()
	return c
}

func (c *Conn) Set(out, in Faults) {
	c.out.set(out)
	c.in.set(in)
}

func (c *Conn) Counts() (out, in Count) { return c.out.counted(), c.in.counted() }

func (c *Conn) receive() {
	buffer := make([]byte, maxPacket)
	for {
		n, from, err := c.PacketConn.ReadFrom(buffer)
		if err != nil {
			c.err = err
			close(c.failed)
			return
		}
		c.in.carry(buffer[:n], func(packet []byte) {
			select {
			case c.arrived <- arrival{append([]byte(nil), packet...), from}:
			default: // no reader, so the packet is lost
			}
		})
	}
}

func (c *Conn) ReadFrom(to []byte) (int, net.Addr, error) {
	select {
	case next := <-c.arrived:
		return copy(to, next.packet), next.from, nil
	case <-c.failed:
		return 0, nil, c.err
	}
}

// WriteTo implements net.PacketConn. A packet that cannot be sent is lost, as on a real network.
func (c *Conn) WriteTo(packet []byte, to net.Addr) (int, error) {
	c.out.carry(packet, func(packet []byte) { _, _ = c.PacketConn.WriteTo(packet, to) })
	return len(packet), nil
}

func (c *Conn) Close() (err error) {
	c.closing.Do(func() {
		c.out.close()
		c.in.close()
		err = c.PacketConn.Close()
	})
	return err
}
