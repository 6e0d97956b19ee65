package main

import (
	"fmt"
	"net/http"
	"net/netip"

	"cutroom/shared/domain/credential"
	"cutroom/shared/platform/httpserver"
)

type callerFlags struct {
	TrustedProxies []string `env:"CUTROOM_TRUSTED_PROXIES" help:"IP addresses or CIDR blocks, such as 10.1.0.0/16, of reverse proxies whose X-Forwarded-For is trusted, separated by commas (${env})."`
}

type callers struct {
	proxies []netip.Prefix
}

func newCallers(proxies []string) (callers, error) {
	var c callers
	for _, proxy := range proxies {
		block, err := netip.ParsePrefix(proxy)
		if err != nil {
			address, addressErr := netip.ParseAddr(proxy)
			if addressErr != nil {
				return c, fmt.Errorf("CUTROOM_TRUSTED_PROXIES: %q is neither an IP address nor a CIDR block such as 10.1.0.0/16",
					proxy)
			}
			block = netip.PrefixFrom(address.Unmap(), address.Unmap().BitLen())
		}
		c.proxies = append(c.proxies, block)
	}
	return c, nil
}

// value adds the client's address to the contexts of requests.
func (c callers) value(r *http.Request, key any) any {
	if credential.IsCaller(key) {
		return func() string { return httpserver.Caller(r, c.proxies) }
	}
	return nil
}
