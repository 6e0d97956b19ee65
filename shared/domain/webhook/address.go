package webhook

import (
	"net/netip"

	"code.dny.dev/ssrf"
)

// alwaysRejected lists blocks that never receive messages, even if IANA's registries call them
// reachable one day: addresses that embed another address, addresses without a host, and internal
// services of clouds.
var alwaysRejected = [...]netip.Prefix{
	netip.MustParsePrefix("168.63.129.16/32"), // Azure's own services, from within its machines
	netip.MustParsePrefix("192.88.99.0/24"),   // 6to4 relays
	netip.MustParsePrefix("224.0.0.0/3"),      // multicast, reserved, broadcast
	netip.MustParsePrefix("2001::/23"),        // protocols, including Teredo, which contains an IPv4 address
	netip.MustParsePrefix("2002::/16"),        // 6to4, which contains an IPv4 address
}

// registries checks addresses against IANA's special-purpose registries. It rejects every IPv6
// address outside the global unicast block.
var registries = ssrf.New(ssrf.WithAnyPort())

func isPublic(address netip.Addr) bool {
	// For the registries, an IPv4 address in IPv6 form or an address with a zone is not public.
	address = address.WithZone("").Unmap()
	if !address.IsValid() || registries.SafeAddr(address) != nil {
		return false
	}
	for _, block := range alwaysRejected {
		if block.Contains(address) {
			return false
		}
	}
	return true
}
