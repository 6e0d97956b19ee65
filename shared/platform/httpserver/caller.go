package httpserver

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Caller returns the address of a request's sender, or "" if unknown. An IPv6 address is reduced to its /64
// network, which belongs to one customer. X-Forwarded-For is used only if the sender is a trusted proxy. In that
// case, the caller is the last untrusted address in it, because the caller may have forged earlier ones.
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
