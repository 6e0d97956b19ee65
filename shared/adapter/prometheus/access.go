package prometheus

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"net/netip"
	"strings"

	"cutroom/shared/service/gateway"
)

// readable lets those read who call from this machine, and those who send the
// operator's key as "Authorization: Bearer"; an empty key is nobody's. A call
// that was forwarded is not from this machine, whoever forwarded it. To all
// others there is nothing here, as at any other path.
func readable(key string, next http.Handler) http.Handler {
	want := sha256.Sum256([]byte(key))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		got := sha256.Sum256([]byte(sent))
		isOperator := key != "" && ok && subtle.ConstantTimeCompare(got[:], want[:]) == 1
		if !isOperator && !isLocal(r) {
			gateway.NotFound(w)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// forwarding are the fields by which proxies say for whom they call.
var forwarding = []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip", "Via"}

// isLocal reports whether a call comes from this machine. Its name for the
// machine must be a local one too: a page in a browser here can have another
// name lead to it.
func isLocal(r *http.Request) bool {
	for _, field := range forwarding {
		if r.Header.Get(field) != "" {
			return false
		}
	}
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !from.Addr().Unmap().IsLoopback() {
		return false
	}
	host := r.Host
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		host = host[:i]
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	address, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && address.Unmap().IsLoopback()
}
