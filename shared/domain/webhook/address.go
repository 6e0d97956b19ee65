package webhook

import (
	"net/netip"

	"code.dny.dev/ssrf"
)

// alwaysRejected lists blocks that never receive messages, even if IANA's registries declare them reachable:
// addresses that embed another address, addresses that belong to no host, and clouds' internal services.
var alwaysRejected = [...]netip.Prefix{
	netip.MustParsePrefix("168.63.129.16/32"), // Azure's internal services, reachable from its machines
	netip.MustParsePrefix("192.88.99.0/24"),   // 6to4 relays
	netip.MustParsePrefix("224.0.0.0/3"),      // multicast, reserved, broadcast
	netip.MustParsePrefix("2001::/23"),        // protocol assignments, including Teredo, which embeds an IPv4 address
	netip.MustParsePrefix("2002::/16"),        // 6to4, which embeds an IPv4 address
}

// registries checks addresses against IANA's special-purpose registries. It also rejects all IPv6
// addresses outside the global unicast block.
var registries = ssrf.New(ssrf.WithAnyPort())

func isPublic(address netip.Addr) bool {
	// The registries would not treat an IPv4-mapped IPv6 address or an address with a zone as public.
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
