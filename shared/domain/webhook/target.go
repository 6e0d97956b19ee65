package webhook

import (
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"cutroom/shared/domain/fault"
)

const MaxURL = 2048 // in code points

// mailPort is rejected because a mail server would interpret large parts of a message as commands.
const mailPort = 25

// Targets restricts where messages may be sent. The zero value allows only https to the public internet.
type Targets struct {
	hosts    map[string]bool
	prefixes []netip.Prefix
}

// ParseTargets returns targets that also allow the listed host names and address blocks, such as
// 10.1.0.0/16. Plain http is allowed to a listed host name. It is allowed to an address in a listed
// block only if the URL contains the address itself.
func ParseTargets(list []string) (Targets, error) {
	t := Targets{hosts: map[string]bool{}}
	for _, entry := range list {
		entry = strings.TrimSpace(entry)
		if prefix, err := netip.ParsePrefix(entry); err == nil {
			t.prefixes = append(t.prefixes, prefix.Masked())
			continue
		}
		if address, err := netip.ParseAddr(entry); err == nil {
			t.prefixes = append(t.prefixes, netip.PrefixFrom(address, address.BitLen()))
			continue
		}
		if entry == "" || strings.ContainsAny(entry, "/:*@? ") || endsInNumber(canonicalHost(entry)) {
			return Targets{}, fmt.Errorf("%q is neither a host name nor a CIDR block such as 10.1.0.0/16", entry)
		}
		t.hosts[canonicalHost(entry)] = true
	}
	return t, nil
}

// CheckURL checks a URL without resolving its host. AllowsAddress then checks the resolved address.
//
// Errors: fault.Invalid.
func (t Targets) CheckURL(raw string) error {
	invalid := func(why string) error { return fault.New(fault.Invalid, "%s", why) }
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Opaque != "" || u.Hostname() == "" || strings.ContainsFunc(raw, func(r rune) bool { return r <= ' ' || r == 0x7f }):
		return invalid("The URL must be absolute, such as https://example.com/hook.")
	case u.User != nil:
		return invalid("The URL must not contain a user name or a password.")
	case strings.Contains(raw, "#"):
		return invalid("The URL must not have a fragment.")
	}
	host := canonicalHost(u.Hostname())
	listed := t.lists(host)
	switch strings.ToLower(u.Scheme) {
	case "https":
	case "http":
		if !listed {
			return invalid("The URL must begin with https://.")
		}
	default:
		return invalid("The URL must begin with https://.")
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || n == mailPort {
			return invalid("The URL's port is not allowed.")
		}
	} else if strings.HasSuffix(u.Host, ":") {
		return invalid("The URL's port is not allowed.")
	}
	if listed {
		return nil
	}
	address, err := netip.ParseAddr(host)
	switch {
	case err == nil && !isPublic(address), isLocalName(host):
		return invalid("The URL's host is not on the public internet.")
	case err != nil && endsInNumber(host):
		return invalid("The URL's host must be a name, or an address in its usual notation.")
	}
	return nil
}

// AllowsAddress reports whether a message may be sent to the address that the host resolved to.
func (t Targets) AllowsAddress(host string, address netip.Addr) bool {
	return isPublic(address) || t.hosts[canonicalHost(host)] || t.listsAddress(address)
}

func (t Targets) lists(host string) bool {
	if t.hosts[host] {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && t.listsAddress(address)
}

func (t Targets) listsAddress(address netip.Addr) bool {
	address = address.WithZone("").Unmap()
	for _, prefix := range t.prefixes {
		if prefix.Contains(address) {
			return true
		}
	}
	return false
}

func canonicalHost(host string) string { return strings.ToLower(strings.TrimSuffix(host, ".")) }

// isLocalName recognizes names that are not public (RFC 6761, RFC 6762, and "internal", which ICANN has reserved).
func isLocalName(host string) bool {
	for _, domain := range []string{"localhost", "local", "internal"} {
		if host == domain || strings.HasSuffix(host, "."+domain) {
			return true
		}
	}
	return false
}

// endsInNumber checks whether the last label of a host is a number. Some resolvers then parse the
// host as an address in an old notation (WHATWG, "URL", "ends in a number").
func endsInNumber(host string) bool {
	last := host[strings.LastIndexByte(host, '.')+1:]
	_, err := strconv.ParseUint(last, 0, 64)
	return err == nil
}
