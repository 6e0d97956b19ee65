package httpserver

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Caller names where a request comes from: its address, of IPv6 the network of 64
// bits, which is one customer's. It is "" where the address cannot be told.
//
// X-Forwarded-For counts only where the request comes from a trusted proxy: of the
// addresses there the last one that is no trusted proxy's, as those before it are the
// caller's own words.
func Caller(r *http.Request, trusted []netip.Prefix) string {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return ""
	}
	caller := from.Addr().Unmap().WithZone("")
	if len(trusted) > 0 {
		caller = beyond(caller, r.Header, trusted)
	}
	if caller.Is4() {
		return caller.String()
	}
	network, err := caller.Prefix(64)
	if err != nil {
		return ""
	}
	return network.String()
}

// beyond returns the address that is beyond the trusted proxies.
func beyond(caller netip.Addr, header http.Header, trusted []netip.Prefix) netip.Addr {
	isTrusted := func() bool {
		return slices.ContainsFunc(trusted, func(p netip.Prefix) bool { return p.Contains(caller) })
	}
	hops := strings.Split(strings.Join(header.Values("X-Forwarded-For"), ","), ",")
	for _, hop := range slices.Backward(hops) {
		if !isTrusted() {
			break
		}
		address, err := netip.ParseAddr(strings.TrimSpace(hop))
		if err != nil {
			break
		}
		caller = address.Unmap().WithZone("")
	}
	return caller
}
