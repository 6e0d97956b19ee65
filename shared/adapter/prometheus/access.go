package prometheus

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"

	"cutroom/shared/service/gateway"
)

// readable serves callers who send the operator's key as "Authorization: Bearer"; an
// empty key admits nobody. The caller's address proves nothing: a proxy on this machine
// calls from this machine for everybody, and most proxies forward neither the caller's
// address nor the host that it called. All others get a 404, as at an unknown path.
//
// failed is called for each wrong key and may delay the caller; it may be nil.
func readable(key string, failed func(context.Context), next http.Handler) http.Handler {
	want := sha256.Sum256([]byte(key))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		got := sha256.Sum256([]byte(sent))
		if key == "" || !ok || subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
			if ok && failed != nil {
				failed(r.Context())
			}
			gateway.NotFound(w)
			return
		}
		next.ServeHTTP(w, r)
	})
}
