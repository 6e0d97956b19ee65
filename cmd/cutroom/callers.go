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

// named adds the client's address to the context of each request.
func (c callers) named(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := credential.WithCaller(r.Context(), httpserver.Caller(r, c.proxies))
		// The server reads the matched route's pattern from the original request, so copy it there.
		named := r.WithContext(ctx)
		defer func() { r.Pattern = named.Pattern }()
		handler.ServeHTTP(w, named)
	})
}
