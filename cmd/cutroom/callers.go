package main

import (
	"fmt"
	"net/http"
	"net/netip"

	"cutroom/shared/domain/credential"
	"cutroom/shared/platform/httpserver"
)

// callerFlags name the proxies that are trusted to report a call's origin.
type callerFlags struct {
	TrustedProxies []string `env:"CUTROOM_TRUSTED_PROXIES" help:"Addresses, and blocks such as 10.1.0.0/16, of the proxies in front, whose X-Forwarded-For says where a call comes from, with commas between them (${env})."`
}

// callers finds out the origin of calls.
type callers struct {
	// proxies are the proxies whose X-Forwarded-For is trusted.
	proxies []netip.Prefix
}

// newCallers parses the setting: addresses, and blocks of addresses.
func newCallers(proxies []string) (callers, error) {
	var c callers
	for _, proxy := range proxies {
		block, err := netip.ParsePrefix(proxy)
		if err != nil {
			address, addressErr := netip.ParseAddr(proxy)
			if addressErr != nil {
				return c, fmt.Errorf("CUTROOM_TRUSTED_PROXIES: %q is neither an address nor a block of addresses such as 10.1.0.0/16",
					proxy)
			}
			block = netip.PrefixFrom(address.Unmap(), address.Unmap().BitLen())
		}
		c.proxies = append(c.proxies, block)
	}
	return c, nil
}

// named puts the caller's address into the context of each request.
func (c callers) named(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := credential.WithCaller(r.Context(), httpserver.Caller(r, c.proxies))
		// The server reads the pattern of the matched route from the original request.
		named := r.WithContext(ctx)
		defer func() { r.Pattern = named.Pattern }()
		handler.ServeHTTP(w, named)
	})
}
