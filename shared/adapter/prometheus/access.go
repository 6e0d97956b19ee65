package prometheus

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"

	"cutroom/shared/service/gateway"
)

// readable lets those read who send the operator's key as "Authorization: Bearer";
// an empty key is nobody's. Where a call comes from proves nothing: a proxy on this
// machine calls from this machine for everybody, and most of them pass on neither
// the caller's address nor the name that it called. To all others there is nothing
// here, as at any other path.
//
// failed is called for a wrong key, and slows who tries keys; nil slows nobody.
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
