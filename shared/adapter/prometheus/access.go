package prometheus

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"

	"cutroom/shared/service/gateway"
)

// readable serves only callers that send the operator's key as "Authorization: Bearer". An empty key matches no
// caller. The caller's address does not matter, because a proxy on this machine calls on behalf of every client. All
// other callers get a 404, as for an unknown path.
//
// readable calls `failed` for each wrong key. That function may delay the caller and may be nil.
func readable(key string, failed func(context.Context), next http.Handler) http.Handler {
	want := sha256.Sum256([]byte(key))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		got := sha256.Sum256([]byte(sent))
		if key == "" || !ok || subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
			if ok && failed != nil {
				failed(r.Context())
			}
			gateway.NotFound(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}
