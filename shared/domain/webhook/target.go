package webhook

import (
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"cutroom/shared/domain/fault"
)

// MaxURL is how long the URL of a webhook may be, in code points.
const MaxURL = 2048

// mailPort is the one port that no message goes to: a mail server takes much of
// what it is sent for commands.
const mailPort = 25

// Targets says where messages may go. The zero Targets are those of the public
// internet, by https.
type Targets struct {
	hosts    map[string]bool
	prefixes []netip.Prefix
}

// ParseTargets makes targets that have, besides the public ones, those of a list:
// names of hosts, and blocks of addresses such as 10.1.0.0/16. By http, too, go
// messages to a host of the list, and to an address that a URL itself names.
//
// Errors: an entry is neither.
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
			return Targets{}, fmt.Errorf("%q is neither the name of a host nor a block of addresses such as 10.1.0.0/16", entry)
		}
		t.hosts[canonicalHost(entry)] = true
	}
	return t, nil
}

// CheckURL reports why no message may go to a URL. What a name stands for is not
// asked here: AllowsAddress tells of what it turns out to be.
//
// Errors: fault.Invalid.
func (t Targets) CheckURL(raw string) error {
	invalid := func(why string) error { return fault.New(fault.Invalid, "%s", why) }
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Opaque != "" || u.Hostname() == "" || strings.ContainsFunc(raw, isControlOrSpace):
		return invalid("The URL is not an absolute one such as https://example.com/hook.")
	case u.User != nil:
		return invalid("The URL must not hold a user name or a password.")
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
			return invalid("The URL's port is not one that messages may go to.")
		}
	} else if strings.HasSuffix(u.Host, ":") {
		return invalid("The URL's port is not one that messages may go to.")
	}
	if listed {
		return nil
	}
	address, err := netip.ParseAddr(host)
	switch {
	case err == nil && !isPublic(address), isLocalName(host):
		return invalid("The URL's host is not one of the public internet.")
	case err != nil && endsInNumber(host):
		return invalid("The URL's host is not a name, and not an address in its usual form.")
	}
	return nil
}

// AllowsAddress reports whether a message to a host, as its URL names it, may go
// to an address that this has turned out to be.
func (t Targets) AllowsAddress(host string, address netip.Addr) bool {
	return isPublic(address) || t.hosts[canonicalHost(host)] || t.listsAddress(address)
}

// lists reports whether a host is on the list by its name, or is an address on it.
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

// canonicalHost gives a host as it is compared.
func canonicalHost(host string) string { return strings.ToLower(strings.TrimSuffix(host, ".")) }

// isLocalName reports whether a name is kept for networks that are not public
// (RFC 6761, RFC 6762 and ICANN's reservation of "internal").
func isLocalName(host string) bool {
	for _, domain := range []string{"localhost", "local", "internal"} {
		if host == domain || strings.HasSuffix(host, "."+domain) {
			return true
		}
	}
	return false
}

// endsInNumber reports whether a host's last part is a number, which some
// resolvers take for an address in one of its old forms (WHATWG, "URL", "ends in a
// number").
func endsInNumber(host string) bool {
	last := host[strings.LastIndexByte(host, '.')+1:]
	_, err := strconv.ParseUint(last, 0, 64)
	return err == nil
}

func isControlOrSpace(r rune) bool { return r <= ' ' || r == 0x7f }
