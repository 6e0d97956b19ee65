package webrtc

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/pion/stun/v4"
)

// newSTUN starts a STUN server that ignores the first request, sends garbage before each response,
// and always reports the address seen.
func newSTUN(t *testing.T, seen string) (url string) {
	t.Helper()
	socket, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { socket.Close() })
	go func() {
		buffer := make([]byte, 1500)
		for n := 0; ; n++ {
			length, from, err := socket.ReadFrom(buffer)
			if err != nil {
				return
			}
			request := &stun.Message{Raw: append([]byte(nil), buffer[:length]...)}
			if n == 0 || request.Decode() != nil {
				continue
			}
			foreign := stun.MustBuild(stun.TransactionID, stun.BindingSuccess,
				&stun.XORMappedAddress{IP: net.ParseIP("198.51.100.66"), Port: 1})
			answer := stun.MustBuild(stun.NewTransactionIDSetter(request.TransactionID), stun.BindingSuccess,
				&stun.XORMappedAddress{IP: net.ParseIP(seen), Port: 1234}, stun.Fingerprint)
			for _, text := range [][]byte{[]byte("rubbish"), {}, foreign.Raw, answer.Raw} {
				_, _ = socket.WriteTo(text, from) // fails after the test has ended
			}
		}
	}()
	return "stun:" + socket.LocalAddr().String()
}

func TestPublicAddressesAreFound(t *testing.T) {
	task := func(context.Context) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("203.0.113.9")}, nil
	}
	server := newSTUN(t, "203.0.113.7")
	for name, c := range map[string]struct {
		public []string
		task   func(context.Context) ([]netip.Addr, error)
		want   string
		wrong  string
	}{
		"none":                         {nil, nil, "", ""},
		"a list":                       {[]string{"203.0.113.1", "2001:db8::1"}, nil, "203.0.113.1 2001:db8::1", ""},
		"a STUN server's view":         {[]string{server}, nil, "203.0.113.7", ""},
		"a task's":                     {[]string{"ecs"}, task, "203.0.113.9", ""},
		"outside a task":               {[]string{"ecs"}, nil, "", "not an ECS task"},
		"a host name":                  {[]string{"example.com"}, nil, "", `"example.com" is not an IP address`},
		"a STUN server and an address": {[]string{server, "203.0.113.1"}, nil, "", "is not an IP address"},
		"a STUN server without name":   {[]string{"stun:"}, nil, "", "must be stun:HOST:PORT"},
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

func TestSilentSTUNServerIsReported(t *testing.T) {
	socket, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, _, _ = socket.ReadFrom(make([]byte, 1500))
		cancel()
	}()
	found, err := Config{Public: []string{"stun:" + socket.LocalAddr().String()}}.public(ctx)
	if err == nil || !strings.Contains(err.Error(), "does not respond") {
		t.Errorf("%v, %v", found, err)
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
	for public, wrong := range map[string]bool{"ecs": false, "stun:192.0.2.1:1": false, "203.0.113.1": false, "x": true} {
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
