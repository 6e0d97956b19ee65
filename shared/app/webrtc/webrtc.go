// Package webrtc opens the WebRTC transport of realtime sessions from the settings CUTROOM_RTC_….
package webrtc

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"cutroom/shared/platform/httpserver"
	"cutroom/shared/platform/memorylimit"
	"cutroom/shared/platform/sandbox"
	"cutroom/shared/platform/vp8"
	"cutroom/shared/service/realtime"
	"cutroom/shared/service/realtime/room"
)

const (
	Off = "off"
	// Auto opens the transport at autoAddress, for clients on this machine, if possible.
	Auto        = "auto"
	autoAddress = "127.0.0.1:8082"
)

type Config struct {
	// Addr is a host and port, or Auto. If it is empty or Off, the transport is off.
	Addr string
	// Public holds the addresses to give to clients instead of the machine's own addresses. Alternatively, its only
	// element is OfTask.
	Public []string
	Task   func(context.Context) ([]netip.Addr, error)
	Relays []string
	// RelaySecret is shared by all TURN servers.
	RelaySecret string
	Sandbox     *sandbox.Sandbox
	Origins     httpserver.Origins
	Now         func() time.Time
	Logger      *slog.Logger
}

type Transport struct {
	Realtime *realtime.WebRTC
	ports    *room.Ports
}

// Open returns nil if the transport is off, or if Auto cannot open it.
//
// It fails if the port is in use, the codec is missing, or an address is invalid. Errors name the setting.
func Open(ctx context.Context, c Config) (*Transport, error) {
	if c.Addr == "" || c.Addr == Off {
		return nil, c.check()
	}
	auto := c.Addr == Auto
	if auto {
		c.Addr = autoAddress
	}
	public, err := c.public(ctx)
	if err != nil {
		return nil, fmt.Errorf("CUTROOM_RTC_PUBLIC: %w", err)
	}
	relays, err := c.relays()
	if err != nil {
		return nil, err
	}
	t, err := open(ctx, c, public, relays)
	if auto && err != nil {
		c.Logger.Info("live video over WebRTC is off", "reason", err)
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("CUTROOM_RTC_ADDR: %w", err)
	}
	c.Logger.Info("live video over WebRTC is on", "address", t.ports.Address(), "public", public, "relays", len(relays.URLs),
		"codec", t.Realtime.Codecs.String())
	return t, nil
}

func open(ctx context.Context, c Config, public []netip.Addr, relays room.Relays) (*Transport, error) {
	ports, err := room.Listen(room.PortsConfig{Address: c.Addr, Public: public, Logger: c.Logger})
	if err != nil {
		return nil, err
	}
	codecs, err := vp8.Find(ctx, c.Sandbox)
	if err != nil {
		ports.Close()
		return nil, err
	}
	// A token is valid only for this process's rooms, so a random secret suffices.
	rooms := room.NewServer(room.ServerConfig{
		Ports: ports, Secret: []byte(rand.Text()), Now: c.Now, NewID: rand.Text, Origins: c.Origins, Relays: relays,
		Logger: c.Logger,
	})
	return &Transport{&realtime.WebRTC{Rooms: rooms, Codecs: codecs, MaxRooms: maxRooms(memorylimit.OfMachine())}, ports}, nil
}

// roomMemory is the memory of a session with full HD video in bytes: three pictures, and the process of its codec.
const roomMemory = 40 << 20

// maxRooms permits rooms a quarter of the machine's memory, in bytes. If the memory is unknown, rooms are not limited.
func maxRooms(memory int64) int {
	if memory == 0 {
		return 0
	}
	return max(10, int(memory/4/roomMemory))
}

func (t *Transport) For() *realtime.WebRTC {
	if t == nil {
		return nil
	}
	return t.Realtime
}

// Call Close after all sessions have ended.
func (t *Transport) Close() error {
	if t == nil {
		return nil
	}
	return t.ports.Close()
}
