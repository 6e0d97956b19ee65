package webrtc

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/pion/stun/v3"
)

// newSTUN starts a STUN server that leaves the first request unanswered, answers each with
// rubbish first, and sees everybody at the address.
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
				_, _ = socket.WriteTo(text, from) // fails when the test is over
			}
		}
	}()
	return "stun:" + socket.LocalAddr().String()
}

func TestPublicAddresses(t *testing.T) {
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
		"none":                       {nil, nil, "", ""},
		"a list":                     {[]string{"203.0.113.1", "2001:db8::1"}, nil, "203.0.113.1 2001:db8::1", ""},
		"what a STUN server sees":    {[]string{server}, nil, "203.0.113.7", ""},
		"a task's":                   {[]string{"ecs"}, task, "203.0.113.9", ""},
		"no task":                    {[]string{"ecs"}, nil, "", "not an ECS task"},
		"a name":                     {[]string{"example.com"}, nil, "", `"example.com" is not an IP address`},
		"a STUN server beside":       {[]string{server, "203.0.113.1"}, nil, "", "is not an IP address"},
		"a STUN server without name": {[]string{"stun:"}, nil, "", "does not name a STUN server"},
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

func TestASTUNServerThatIsSilent(t *testing.T) {
	socket, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, _, _ = socket.ReadFrom(make([]byte, 1500)) // the request
		cancel()
	}()
	found, err := Config{Public: []string{"stun:" + socket.LocalAddr().String()}}.public(ctx)
	if err == nil || !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("%v, %v", found, err)
	}
}

func TestRelays(t *testing.T) {
	const secret = "a secret of 16 b"
	for name, c := range map[string]struct {
		relays        []string
		secret, wrong string
	}{
		"none":                   {nil, "", ""},
		"by TLS and by UDP":      {[]string{"turns:turn.example.com:443?transport=tcp", "turn:turn.example.com"}, secret, ""},
		"no secret":              {[]string{"turn:turn.example.com"}, "", "CUTROOM_RTC_TURN_SECRET: it has 0 bytes"},
		"a secret too short":     {[]string{"turn:turn.example.com"}, secret[1:], "CUTROOM_RTC_TURN_SECRET: it has 15 bytes"},
		"a STUN server":          {[]string{"stun:turn.example.com"}, secret, "CUTROOM_RTC_TURN: \"stun:"},
		"a page":                 {[]string{"https://turn.example.com"}, secret, "CUTROOM_RTC_TURN: \"https:"},
		"a transport of no TURN": {[]string{"turn:turn.example.com?transport=http"}, secret, "CUTROOM_RTC_TURN: "},
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

// A transport that is off asks no server, and still refuses invalid settings.
func TestATransportThatIsOff(t *testing.T) {
	for public, wrong := range map[string]bool{"ecs": false, "stun:192.0.2.1:1": false, "203.0.113.1": false, "x": true} {
		opened, err := Open(t.Context(), Config{Addr: Off, Public: []string{public}})
		if opened != nil || (err != nil) != wrong {
			t.Errorf("%s: %v, %v", public, opened, err)
		}
	}
}

// Live video without an explicit address is left out if it cannot start.
func TestAuto(t *testing.T) {
	var log strings.Builder
	c := Config{Addr: Auto, Now: time.Now, Logger: slog.New(slog.NewTextHandler(&log, nil))}
	taken, err := net.ListenPacket("udp", autoAddress)
	if err == nil {
		t.Cleanup(func() { taken.Close() })
	}
	transport, err := Open(t.Context(), c)
	if transport != nil || err != nil || !strings.Contains(log.String(), "no live video over WebRTC") {
		t.Errorf("%v, %v, %s", transport, err, log.String())
	}
	c.Public = []string{"nonsense"}
	if _, err := Open(t.Context(), c); err == nil {
		t.Error("nonsense in another setting is not an error")
	}
}
