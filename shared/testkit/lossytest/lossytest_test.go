package lossytest_test

import (
	"encoding/binary"
	"io"
	"net"
	"runtime"
	"testing"
	"time"

	"cutroom/shared/testkit/lossytest"
	"cutroom/shared/testkit/patience"
	"cutroom/shared/testkit/programtest"
)

// echo returns the address of a server that sends everything back, by UDP and by TCP.
func echo(t *testing.T) string {
	t.Helper()
	address, err := programtest.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	socket, err := net.ListenPacket("udp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close(); socket.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(conn, conn)
				conn.Close()
			}()
		}
	}()
	go func() {
		buffer := make([]byte, 2048)
		for {
			n, from, err := socket.ReadFrom(buffer)
			if err != nil {
				return
			}
			_, _ = socket.WriteTo(buffer[:n], from)
		}
	}()
	return address
}

func newRelay(t *testing.T, seed uint64) *lossytest.Relay {
	t.Helper()
	relay, err := lossytest.NewRelay("127.0.0.2:0", echo(t), seed)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { relay.Close() })
	return relay
}

func dial(t *testing.T, network, address string) net.Conn {
	t.Helper()
	conn, err := net.Dial(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience.Max)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// exchange sends numbered packets one after the other, and returns which came back, in
// their order: all that are due when a last one comes, which is sent on a good network.
func exchange(t *testing.T, relay *lossytest.Relay, up lossytest.Faults, packets int) (back []int) {
	t.Helper()
	conn := dial(t, "udp", relay.Addr())
	relay.Set(up, lossytest.Faults{})
	received := make(chan error)
	go func() {
		packet := make([]byte, 4)
		for {
			if _, err := conn.Read(packet); err != nil {
				received <- err
				return
			}
			n := int(binary.BigEndian.Uint32(packet))
			if n == packets {
				received <- nil
				return
			}
			back = append(back, n)
		}
	}()
	packet := make([]byte, 4)
	for n := range packets + 1 {
		if n == packets {
			for up, _ := relay.Counts(); up.Passed+up.Dropped < int64(n); up, _ = relay.Counts() {
				runtime.Gosched()
			}
			relay.Set(lossytest.Faults{Delay: 200 * time.Millisecond}, lossytest.Faults{})
		}
		binary.BigEndian.PutUint32(packet, uint32(n))
		if _, err := conn.Write(packet); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-received; err != nil {
		t.Fatal(err)
	}
	return back
}

// Packets are lost, doubled and overtaken as often as was asked for.
func TestFaults(t *testing.T) {
	const packets = 200 // for so many every socket has room
	for name, of := range map[string]struct {
		faults                  lossytest.Faults
		least, most             int
		ordered, lost, repeated bool
	}{
		"a good network": {lossytest.Faults{}, packets, packets, true, false, false},
		"drop":           {lossytest.Faults{Drop: .2}, packets * 7 / 10, packets * 9 / 10, true, true, false},
		"duplicate":      {lossytest.Faults{Duplicate: .2}, packets * 11 / 10, packets * 13 / 10, true, false, true},
		"reorder":        {lossytest.Faults{Reorder: .2}, packets, packets, false, false, false},
		"delay":          {lossytest.Faults{Delay: 5 * time.Millisecond}, packets, packets, true, false, false},
		"block":          {lossytest.Faults{Block: true}, 0, 0, true, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			back := exchange(t, newRelay(t, 1), of.faults, packets)
			if len(back) < of.least || len(back) > of.most {
				t.Errorf("%d of %d came back, want %d to %d", len(back), packets, of.least, of.most)
			}
			seen, ordered, repeated := map[int]bool{}, true, false
			for i, n := range back {
				ordered = ordered && (i == 0 || n >= back[i-1])
				repeated = repeated || seen[n]
				seen[n] = true
			}
			if lost := len(seen) < packets; ordered != of.ordered || lost != of.lost || repeated != of.repeated {
				t.Errorf("ordered %t, lost %t, repeated %t", ordered, lost, repeated)
			}
		})
	}
}

// The seed decides which packets are lost.
func TestSeed(t *testing.T) {
	lost := func(seed uint64) (lost [64]bool) {
		for i := range lost {
			lost[i] = true
		}
		for _, n := range exchange(t, newRelay(t, seed), lossytest.Faults{Drop: .5}, len(lost)) {
			lost[n] = false
		}
		return lost
	}
	first := lost(1)
	if lost(1) != first {
		t.Error("the same seed loses other packets")
	}
	if lost(2) == first {
		t.Error("another seed loses the same packets")
	}
}

// Connections of TCP pass, until they are cut.
func TestTCP(t *testing.T) {
	relay := newRelay(t, 1)
	say := func() error {
		conn := dial(t, "tcp", relay.Addr())
		if _, err := conn.Write([]byte("hello")); err != nil {
			return err
		}
		_, err := io.ReadFull(conn, make([]byte, 5))
		return err
	}
	if err := say(); err != nil {
		t.Fatal(err)
	}
	open := dial(t, "tcp", relay.Addr())
	relay.Cut(true)
	if _, err := open.Read(make([]byte, 1)); err == nil {
		t.Error("a connection outlives the cut")
	}
	if say() == nil {
		t.Error("a connection is made after the cut")
	}
	relay.Cut(false)
	if err := say(); err != nil {
		t.Error(err)
	}
}

// A socket may have the bad network itself.
func TestConn(t *testing.T) {
	socket, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	conn := lossytest.NewConn(socket, 1)
	at, err := net.ResolveUDPAddr("udp", echo(t))
	if err != nil {
		t.Fatal(err)
	}
	conn.Set(lossytest.Faults{Block: true}, lossytest.Faults{Duplicate: 1})
	send := func(text string) {
		if _, err := conn.WriteTo([]byte(text), at); err != nil {
			t.Fatal(err)
		}
	}
	send("lost")
	conn.Set(lossytest.Faults{}, lossytest.Faults{Duplicate: 1})
	send("twice")
	buffer := make([]byte, 100)
	for range 2 {
		if n, _, err := conn.ReadFrom(buffer); err != nil || string(buffer[:n]) != "twice" {
			t.Errorf("received %q, %v", buffer[:n], err)
		}
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	if _, _, err := conn.ReadFrom(buffer); err == nil {
		t.Error("a closed socket is read")
	}
}
