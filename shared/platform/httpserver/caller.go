package httpserver

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Caller returns the address of a request's sender, or the /64 network of an IPv6 address, which
// belongs to one customer, or "". X-Forwarded-For counts only from a trusted proxy. Then the caller
// is its last untrusted address, because the caller may have invented earlier ones.
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

func beyond(caller netip.Addr, header http.Header, trusted []netip.Prefix) netip.Addr {
	isTrusted := func() bool {
		return slices.ContainsFunc(trusted, func(p netip.Prefix) bool { return p.Contains(caller) })
	}
	for hops := strings.Join(header.Values("X-Forwarded-For"), ","); hops != "" && isTrusted(); {
		last := strings.LastIndexByte(hops, ',')
		address, err := netip.ParseAddr(strings.TrimSpace(hops[last+1:]))
		hops = hops[:max(last, 0)]
		if err != nil {
			break
		}
		caller = address.Unmap().WithZone("")
	}
	return caller
}
