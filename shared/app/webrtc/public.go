package webrtc

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
)

const OfTask = "ecs"

func (c Config) check() error {
	if len(c.Public) == 1 && c.Public[0] == OfTask {
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
