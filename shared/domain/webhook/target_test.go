package webhook_test

import (
	"net/netip"
	"slices"
	"testing"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/webhook"
)

func TestTargetsCheckURLs(t *testing.T) {
	allowing, err := webhook.ParseTargets([]string{"hooks.corp.example", " 10.1.0.0/16", "fd00:1::/32", "127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		url string
		// public reports whether the zero Targets allows the URL. allowed reports whether Targets with a list allows
		// it.
		public, allowed bool
	}{
		{"https://example.com", true, true},
		{"https://example.com/hook?secret=1", true, true},
		{"HTTPS://EXAMPLE.COM:8443/", true, true},
		{"https://bücher.example/", true, true},
		{"https://93.184.215.14/", true, true},
		{"https://[2606:2800:21f:cb07:6820:80da:af6b:8b2c]/", true, true},
		{"http://example.com/", false, false},
		{"ftp://example.com/", false, false},
		{"//example.com/", false, false},
		{"/hook", false, false},
		{"https:example.com", false, false},
		{"https://", false, false},
		{"https://:443/", false, false},
		{"https://user@example.com/", false, false},
		{"https://user:password@example.com/", false, false},
		{"https://@example.com/", false, false},
		{"https://example.com/#part", false, false},
		{"https://example.com/#", false, false},
		{"https://example.com/a b", false, false},
		{"https://example.com/\r\nX: 1", false, false},
		{"https://example.com:0/", false, false},
		{"https://example.com:25/", false, false},
		{"https://example.com:65536/", false, false},
		{"https://example.com:/", false, false},
		{"https://localhost/", false, false},
		{"https://LOCALHOST./", false, false},
		{"https://a.localhost/", false, false},
		{"https://printer.local/", false, false},
		{"https://metadata.google.internal/", false, false},
		{"https://127.0.0.1/", false, true},
		{"https://127.0.0.2/", false, false},
		{"https://127.0.0.1./", false, true},
		{"https://127.1/", false, false},
		{"https://2130706433/", false, false},
		{"https://0x7f000001/", false, false},
		{"https://0177.0.0.1/", false, false},
		{"https://169.254.169.254/latest/meta-data", false, false},
		{"https://10.1.2.3/", false, true},
		{"http://10.1.2.3:8080/", false, true},
		{"https://10.2.0.1/", false, false},
		{"https://[::1]/", false, false},
		{"https://[::ffff:127.0.0.1]/", false, true},
		{"https://[::ffff:10.2.0.1]/", false, false},
		{"https://[fe80::1%25eth0]/", false, false},
		{"https://[fd00:1::5]/", false, true},
		{"https://[fd00:ec2::254]/", false, false},
		{"https://[64:ff9b::a00:1]/", false, false},
		{"https://hooks.corp.example/", true, true},
		{"http://hooks.corp.example/", false, true},
		{"http://HOOKS.corp.example./", false, true},
		{"http://more.hooks.corp.example/", false, false},
	} {
		for targets, want := range map[*webhook.Targets]bool{{}: c.public, &allowing: c.allowed} {
			err := targets.CheckURL(c.url)
			if (err == nil) != want || err != nil && !fault.Is(err, fault.Invalid) {
				t.Errorf("%s: %v, want %t", c.url, err, want)
			}
		}
	}
}

func TestTargetsCheckAddresses(t *testing.T) {
	allowing, err := webhook.ParseTargets([]string{"hooks.corp.example", "10.1.0.0/16"})
	if err != nil {
		t.Fatal(err)
	}
	for address, public := range map[string]bool{
		"1.1.1.1": true, "93.184.215.14": true, "172.15.255.255": true, "172.32.0.0": true, "100.63.255.255": true,
		"100.128.0.0":     true,
		"223.255.255.255": true, "2606:4700:4700::1111": true, "2a00::1": true, "::ffff:1.1.1.1": true,
		"0.0.0.0": false, "0.1.2.3": false, "10.0.0.1": false, "100.64.0.1": false, "127.255.255.255": false,
		"169.254.169.254": false,
		"172.16.0.1":      false, "172.31.255.255": false, "192.0.0.8": false, "192.0.2.1": false, "192.88.99.1": false,
		"192.168.1.1": false,
		"198.18.0.1":  false, "198.51.100.1": false, "203.0.113.1": false, "224.0.0.1": false, "240.0.0.1": false,
		"255.255.255.255": false,
		"::":              false, "::1": false, "::ffff:127.0.0.1": false, "::127.0.0.1": false, "64:ff9b::7f00:1": false,
		"64:ff9b:1::1": false,
		"100::1":       false, "2001::1": false, "2001:db8::1": false, "2002:7f00:1::1": false, "3fff::1": false,
		"5f00::1": false,
		"fc00::1": false, "fd00:ec2::254": false, "fe80::1%eth0": false, "fec0::1": false, "ff02::1": false,
	} {
		ip := netip.MustParseAddr(address)
		if got := (webhook.Targets{}).AllowsAddress("example.com", ip); got != public {
			t.Errorf("%s is allowed as public: %t", address, got)
		}
		if got := allowing.AllowsAddress("example.com", ip); got != public {
			t.Errorf("%s is allowed for an unlisted host: %t", address, got)
		}
		if !allowing.AllowsAddress("Hooks.corp.example.", ip) {
			t.Errorf("%s is not allowed for a listed host", address)
		}
	}
	if !allowing.AllowsAddress("example.com", netip.MustParseAddr("::ffff:10.1.2.3")) {
		t.Error("a listed address is not allowed in its other form")
	}
}

// Blocks are rejected from their first to their last address, in each notation. The addresses
// around them are public unless they are in another block.
func TestSpecialPurposeBlocksAreRejected(t *testing.T) {
	blocks := []string{
		"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "168.63.129.16/32", "169.254.0.0/16", "172.16.0.0/12",
		"192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16",
		"192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/3",
		"::/3", "2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20", "4000::/2", "8000::/1",
	}
	var prefixes []netip.Prefix
	for _, block := range blocks {
		prefixes = append(prefixes, netip.MustParsePrefix(block))
	}
	refused := func(ip netip.Addr) bool {
		return slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(ip) })
	}
	check := func(t *testing.T, ip netip.Addr) {
		t.Helper()
		if !ip.IsValid() {
			return // past the last address
		}
		want := !refused(ip)
		forms := []netip.Addr{ip}
		if ip.Is4() {
			forms = append(forms, netip.AddrFrom16(ip.As16()))
		} else {
			forms = append(forms, ip.WithZone("eth0"))
		}
		for _, form := range forms {
			if got := (webhook.Targets{}).AllowsAddress("example.com", form); got != want {
				t.Errorf("%s is allowed: %t, want %t", form, got, want)
			}
		}
	}
	for _, p := range prefixes {
		t.Run(p.String(), func(t *testing.T) {
			first, last := p.Addr(), lastOf(p)
			for _, ip := range []netip.Addr{first, first.Next(), last.Prev(), last, first.Prev(), last.Next()} {
				check(t, ip)
			}
		})
	}
	if (webhook.Targets{}).AllowsAddress("example.com", netip.Addr{}) {
		t.Error("no address was allowed")
	}
}

func lastOf(p netip.Prefix) netip.Addr {
	bytes := p.Addr().AsSlice()
	for bit := p.Bits(); bit < len(bytes)*8; bit++ {
		bytes[bit/8] |= 0x80 >> (bit % 8)
	}
	ip, _ := netip.AddrFromSlice(bytes)
	return ip
}

func TestParseTargetsRejectsInvalidEntries(t *testing.T) {
	for _, entry := range []string{
		"", "*", "*.example.com", "http://example.com", "example.com:80", "10.0.0.0/33", "10.0.0.0-10.0.0.9/8", "10.1", "a b",
	} {
		if _, err := webhook.ParseTargets([]string{"example.com", entry}); err == nil {
			t.Errorf("%q was accepted", entry)
		}
	}
}
