package webrtc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/pion/stun/v4"
)

const OfTask = "ecs"

// stunScheme is the prefix of STUN URLs (RFC 7064).
const stunScheme = "stun:"

func (c Config) check() error {
	if len(c.Public) == 1 && (c.Public[0] == OfTask || strings.HasPrefix(c.Public[0], stunScheme)) {
		return nil
	}
	if _, err := addresses(c.Public); err != nil {
		return fmt.Errorf("CUTROOM_RTC_PUBLIC: %w", err)
	}
	return nil
}

// public returns nil to use the machine's own addresses.
func (c Config) public(ctx context.Context) ([]netip.Addr, error) {
	switch {
	case len(c.Public) != 1:
	case c.Public[0] == OfTask && c.Task == nil:
		return nil, errors.New("this program is not an ECS task, so its address is unknown")
	case c.Public[0] == OfTask:
		return c.Task(ctx)
	case strings.HasPrefix(c.Public[0], stunScheme):
		seen, err := askSTUN(ctx, c.Public[0])
		if err != nil {
			return nil, err
		}
		return []netip.Addr{seen}, nil
	}
	return addresses(c.Public)
}

func addresses(listed []string) (all []netip.Addr, err error) {
	for _, text := range listed {
		address, err := netip.ParseAddr(text)
		if err != nil {
			return nil, fmt.Errorf("%q is not an IP address", text)
		}
		all = append(all, address.Unmap())
	}
	return all, nil
}

const (
	// A request is repeated every stunAgain, because packets get lost.
	stunTime, stunAgain = 20 * time.Second, 500 * time.Millisecond
	// maxSTUN limits a STUN message, in bytes.
	maxSTUN = 1500
)

// askSTUN returns this machine's IPv4 address as a STUN server sees it (RFC 8489, section 5).
func askSTUN(ctx context.Context, text string) (netip.Addr, error) {
	server, err := stun.ParseURI(text)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("%q must be stun:HOST:PORT", text)
	}
	ctx, cancel := context.WithTimeout(ctx, stunTime)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "udp4", net.JoinHostPort(server.Host, fmt.Sprint(server.Port)))
	if err != nil {
		return netip.Addr{}, fmt.Errorf("%s: %w", text, err)
	}
	defer conn.Close()
	for ctx.Err() == nil {
		request, err := stun.Build(stun.TransactionID, stun.BindingRequest, stun.Fingerprint)
		if err != nil {
			return netip.Addr{}, err
		}
		_ = conn.SetDeadline(time.Now().Add(stunAgain))
		if _, err := conn.Write(request.Raw); err == nil {
			if seen, err := readSTUN(conn, request.TransactionID); err == nil {
				return seen, nil
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(stunAgain):
		}
	}
	return netip.Addr{}, fmt.Errorf("%s does not respond", text)
}

func readSTUN(conn net.Conn, request [stun.TransactionIDSize]byte) (netip.Addr, error) {
	buffer := make([]byte, maxSTUN)
	for {
		n, err := conn.Read(buffer)
		if err != nil {
			return netip.Addr{}, err
		}
		answer := &stun.Message{Raw: append([]byte(nil), buffer[:n]...)}
		var seen stun.XORMappedAddress
		if answer.Decode() != nil || answer.TransactionID != request || answer.Type != stun.BindingSuccess ||
			seen.GetFrom(answer) != nil {
			continue
		}
		if address, ok := netip.AddrFromSlice(seen.IP); ok {
			return address.Unmap(), nil
		}
	}
}
