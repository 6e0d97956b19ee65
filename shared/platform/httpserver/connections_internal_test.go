package httpserver

import (
	"encoding/binary"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"testing"
)

// The caller has a /48 IPv6 network, and uses a new address for each connection.
func TestOneSiteCannotTakeAllConnections(t *testing.T) {
	c := newConnections(slog.New(slog.DiscardHandler))
	connect := func(text string) *watchedConn {
		from := netip.MustParseAddr(text)
		conn := &watchedConn{tcp: &net.TCPConn{}, network: NetworkOf(from, 64), site: NetworkOf(from, 48)}
		if !c.admit(conn) {
			t.Fatalf("%s is refused", text)
		}
		return conn
	}
	oldest := connect("2001:db8:1::1")
	c.note(oldest, true) // it has been idle the longest
	for i := range uint16(2 * maxConnections) {
		address := netip.MustParseAddr("2001:db8:2::1").As16()
		binary.BigEndian.PutUint16(address[6:], i)
		connect(netip.AddrFrom16(address).String())
	}
	for range maxConnections / 4 {
		connect("203.0.113.1")
	}
	if oldest.forgotten {
		t.Error("the idle one lost its connection")
	}
	if got := count(c.sites, NetworkOf(netip.MustParseAddr("2001:db8:2::1"), 48)); got != c.perSite-1 {
		t.Errorf("the site has %d connections, want %d", got, c.perSite-1)
	}
}

func TestAccountBehindProxyLeavesConnections(t *testing.T) {
	c := newConnections(slog.New(slog.DiscardHandler))
	address := NetworkOf(netip.MustParseAddr("203.0.113.1"), 64)
	for _, account := range []string{"busy", "other"} {
		for i := range c.perHost {
			conn := &watchedConn{tcp: &net.TCPConn{}, network: address, site: address}
			if !c.admit(conn) {
				t.Fatalf("connection %d of %s is rejected", i, account)
			}
			c.setKnown(conn, account)
		}
	}
	if n := c.known["other"].length; n != c.perAccount {
		t.Errorf("the other account has %d protected connections", n)
	}
}

func TestManyAccountsLeaveConnections(t *testing.T) {
	c := newConnections(slog.New(slog.DiscardHandler))
	connect := func(address string, account string) *watchedConn {
		from := NetworkOf(netip.MustParseAddr(address), 64)
		conn := &watchedConn{tcp: &net.TCPConn{}, network: from, site: from}
		if c.admit(conn) {
			c.setKnown(conn, account)
		}
		return conn
	}
	for i := range 2 * maxConnections {
		connect(fmt.Sprintf("203.0.113.%d", i%4), fmt.Sprintf("account-%d", i%8))
	}
	for range 3 {
		if conn := connect("198.51.100.1", "new"); conn.forgotten || conn.account != "new" {
			t.Errorf("a new account's connection is not protected: %+v", conn)
		}
	}
}
