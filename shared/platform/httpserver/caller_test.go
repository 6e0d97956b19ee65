package httpserver_test

import (
	"net/http/httptest"
	"net/netip"
	"testing"

	"cutroom/shared/platform/httpserver"
)

func TestCallerTrustsOnlyProxies(t *testing.T) {
	here := []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32"), netip.MustParsePrefix("10.0.0.0/8")}
	for _, c := range []struct {
		name, from string
		forwarded  []string
		trusted    []netip.Prefix
		want       string
	}{
		{"an address", "192.0.2.7:5000", nil, nil, "192.0.2.7"},
		{"one of IPv6", "[2001:db8:1:2:3:4:5:6]:5000", nil, nil, "2001:db8:1:2::/64"},
		{"one of IPv4 in IPv6", "[::ffff:192.0.2.7]:5000", nil, nil, "192.0.2.7"},
		{"with a zone", "[fe80::1%eth0]:5000", nil, nil, "fe80::/64"},
		{"a header that the caller invented", "192.0.2.7:5000", []string{"198.51.100.1"}, nil, "192.0.2.7"},
		{"a header that the caller invented, next to a proxy", "192.0.2.7:5000", []string{"198.51.100.1"}, here, "192.0.2.7"},
		{"an untrusted proxy", "127.0.0.1:5000", []string{"198.51.100.1"}, nil, "127.0.0.1"},
		{"a proxy", "127.0.0.1:5000", []string{"198.51.100.1"}, here, "198.51.100.1"},
		{"an invented address through a proxy", "127.0.0.1:5000", []string{"203.0.113.1, 198.51.100.1"}, here, "198.51.100.1"},
		{"invented, through a proxy, in two fields", "127.0.0.1:5000", []string{"203.0.113.1", "198.51.100.1"}, here, "198.51.100.1"},
		{"two proxies", "127.0.0.1:5000", []string{"203.0.113.1, 198.51.100.1, 10.1.2.3"}, here, "198.51.100.1"},
		{"a proxy that sends nothing", "127.0.0.1:5000", nil, here, "127.0.0.1"},
		{"a proxy that sends nonsense", "127.0.0.1:5000", []string{"198.51.100.1, unknown"}, here, "127.0.0.1"},
		{"IPv6 through a proxy", "127.0.0.1:5000", []string{"2001:db8::9"}, here, "2001:db8::/64"},
		{"no address", "@", nil, nil, ""},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = c.from
		for _, field := range c.forwarded {
			r.Header.Add("X-Forwarded-For", field)
		}
		if got := httpserver.Caller(r, c.trusted); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
