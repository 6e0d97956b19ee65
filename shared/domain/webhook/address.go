package webhook

import "net/netip"

// notPublic are the blocks that are not routed on the public internet, or lead
// elsewhere than they appear to (IANA, "IPv4 Special-Purpose Address Registry"
// and "IPv6 Special-Purpose Address Registry"). Addresses outside IPv6's global
// unicast block are not public either: loopback, link-local and local
// addresses, multicast, mapped IPv4 and NAT64.
var notPublic = [...]netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),       // this network
	netip.MustParsePrefix("10.0.0.0/8"),      // private
	netip.MustParsePrefix("100.64.0.0/10"),   // behind a provider's NAT
	netip.MustParsePrefix("127.0.0.0/8"),     // this machine
	netip.MustParsePrefix("169.254.0.0/16"),  // this link, and clouds' metadata
	netip.MustParsePrefix("172.16.0.0/12"),   // private
	netip.MustParsePrefix("192.0.0.0/24"),    // protocols
	netip.MustParsePrefix("192.0.2.0/24"),    // documentation
	netip.MustParsePrefix("192.88.99.0/24"),  // relays of 6to4
	netip.MustParsePrefix("192.168.0.0/16"),  // private
	netip.MustParsePrefix("198.18.0.0/15"),   // measurements
	netip.MustParsePrefix("198.51.100.0/24"), // documentation
	netip.MustParsePrefix("203.0.113.0/24"),  // documentation
	netip.MustParsePrefix("224.0.0.0/3"),     // multicast, reserved, broadcast
	netip.MustParsePrefix("2001::/23"),       // protocols, Teredo among them
	netip.MustParsePrefix("2001:db8::/32"),   // documentation
	netip.MustParsePrefix("2002::/16"),       // 6to4, which holds IPv4 addresses
	netip.MustParsePrefix("3fff::/20"),       // documentation
}

// globalUnicast contains all public IPv6 addresses.
var globalUnicast = netip.MustParsePrefix("2000::/3")

// isPublic reports whether an address is on the public internet.
func isPublic(address netip.Addr) bool {
	address = address.WithZone("").Unmap()
	if address.Is6() && !globalUnicast.Contains(address) {
		return false
	}
	for _, block := range notPublic {
		if block.Contains(address) {
			return false
		}
	}
	return address.IsValid()
}
