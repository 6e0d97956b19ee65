package webrtc

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"
)

func TestPublicAddressesAreFound(t *testing.T) {
	task := func(context.Context) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("203.0.113.9")}, nil
	}
	for name, c := range map[string]struct {
		public []string
		task   func(context.Context) ([]netip.Addr, error)
		want   string
		wrong  string
	}{
		"none":           {nil, nil, "", ""},
		"a list":         {[]string{"203.0.113.1", "2001:db8::1"}, nil, "203.0.113.1 2001:db8::1", ""},
		"a task's":       {[]string{"ecs"}, task, "203.0.113.9", ""},
		"outside a task": {[]string{"ecs"}, nil, "", "not an ECS task"},
		"a host name":    {[]string{"example.com"}, nil, "", `"example.com" is not an IP address`},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := Config{Public: c.public, Task: c.task}.public(t.Context())
			var got []string
			for _, address := range found {
				got = append(got, address.String())
			}
			if c.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), c.wrong) {
					t.Errorf("%v, %v, want an error with %q", got, err, c.wrong)
				}
			} else if err != nil || strings.Join(got, " ") != c.want {
				t.Errorf("%v, %v, want %s", got, err, c.want)
			}
		})
	}
}

func TestRelaySettingsAreChecked(t *testing.T) {
	const secret = "a secret of 16 b"
	for name, c := range map[string]struct {
		relays        []string
		secret, wrong string
	}{
		"none":                 {nil, "", ""},
		"TLS and UDP":          {[]string{"turns:turn.example.com:443?transport=tcp", "turn:turn.example.com"}, secret, ""},
		"no secret":            {[]string{"turn:turn.example.com"}, "", "CUTROOM_RTC_TURN_SECRET: is 0 bytes long"},
		"a short secret":       {[]string{"turn:turn.example.com"}, secret[1:], "CUTROOM_RTC_TURN_SECRET: is 15 bytes long"},
		"a STUN server":        {[]string{"stun:turn.example.com"}, secret, "CUTROOM_RTC_TURN: \"stun:"},
		"a web page":           {[]string{"https://turn.example.com"}, secret, "CUTROOM_RTC_TURN: \"https:"},
		"an invalid transport": {[]string{"turn:turn.example.com?transport=http"}, secret, "CUTROOM_RTC_TURN: "},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Config{Relays: c.relays, RelaySecret: c.secret}.relays()
			if c.wrong == "" && (err != nil || len(got.URLs) != len(c.relays)) ||
				c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)) {
				t.Errorf("%v, %v, want an error with %q", got, err, c.wrong)
			}
		})
	}
}

func TestDisabledTransportChecksSettings(t *testing.T) {
	for public, wrong := range map[string]bool{"ecs": false, "203.0.113.1": false, "x": true} {
		opened, err := Open(t.Context(), Config{Addr: Off, Public: []string{public}})
		if opened != nil || (err != nil) != wrong {
			t.Errorf("%s: %v, %v", public, opened, err)
		}
	}
}

func TestAutoStaysOffIfItCannotStart(t *testing.T) {
	var log strings.Builder
	c := Config{Addr: Auto, Now: time.Now, Logger: slog.New(slog.NewTextHandler(&log, nil))}
	taken, err := net.ListenPacket("udp", autoAddress)
	if err == nil {
		t.Cleanup(func() { taken.Close() })
	}
	transport, err := Open(t.Context(), c)
	if transport != nil || err != nil || !strings.Contains(log.String(), "live video over WebRTC is off") {
		t.Errorf("%v, %v, %s", transport, err, log.String())
	}
	c.Public = []string{"nonsense"}
	if _, err := Open(t.Context(), c); err == nil {
		t.Error("an invalid value in another setting was accepted")
	}
}
