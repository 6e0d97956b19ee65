package webhook

import (
	"net/netip"

	"code.dny.dev/ssrf"
)

// alwaysRefused are blocks that messages are never sent to, even if IANA's registries call them reachable
// one day: addresses that embed another address, addresses of no host, and a cloud's internal services.
var alwaysRefused = [...]netip.Prefix{
	netip.MustParsePrefix("168.63.129.16/32"), // Azure's own services, from within its machines
	netip.MustParsePrefix("192.88.99.0/24"),   // 6to4 relays
	netip.MustParsePrefix("224.0.0.0/3"),      // multicast, reserved, broadcast
	netip.MustParsePrefix("2001::/23"),        // protocols, including Teredo, which contains an IPv4 address
	netip.MustParsePrefix("2002::/16"),        // 6to4, which contains an IPv4 address
}

// registries checks addresses against IANA's special-purpose registries. It refuses
// every IPv6 address outside the global unicast block: loopback, link-local and local
// addresses, multicast, and NAT64. It is read only.
var registries = ssrf.New(ssrf.WithAnyPort())

// isPublic reports whether an address is on the public internet.
func isPublic(address netip.Addr) bool {
	// The registries treat an IPv4 address in IPv6 form as outside of IPv6's public block, and an
	// address with a zone as outside of every block.
	address = address.WithZone("").Unmap()
	if !address.IsValid() || registries.SafeAddr(address) != nil {
		return false
	}
	for _, block := range alwaysRefused {
		if block.Contains(address) {
			return false
		}
	}
	return true
}
