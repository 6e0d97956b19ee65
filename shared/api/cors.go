package api

import (
	"net/http"
	"slices"
	"strings"
)

// Origins are the origins that browsers may call from, such as
// https://app.example.com; none, or "*", means any.
type Origins []string

// preflightAge is for how many seconds a browser may remember a preflight; none
// remembers one for longer.
const preflightAge = "7200"

// exposed are the fields of an answer's header that a browser shows to the page,
// beside those that it always does.
var exposed = strings.Join([]string{
	"X-Request-Id", "X-Job-Id", "Retry-After", "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset",
	"ETag", "Content-Disposition", "Content-Length", "Content-Range", "Accept-Ranges", "Allow", "Deprecation", "Link", "Location",
}, ", ")

// allow tells a browser that the page may read the answer, whatever it is. Keys
// travel in a header of their own and never in cookies, so that no answer needs
// Access-Control-Allow-Credentials.
func (o Origins) allow(header http.Header, r *http.Request) {
	origin := r.Header.Get("Origin")
	if len(o) == 0 || slices.Contains(o, "*") {
		header.Set("Access-Control-Allow-Origin", "*")
	} else {
		header.Add("Vary", "Origin")
		if !slices.Contains(o, origin) {
			return
		}
		header.Set("Access-Control-Allow-Origin", origin)
	}
	header.Set("Access-Control-Expose-Headers", exposed)
}

// isPreflight reports whether a browser asks what it may send (the Fetch
// standard, "CORS-preflight request").
func isPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Origin") != "" && r.Header.Get("Access-Control-Request-Method") != ""
}

// answerPreflight answers for a path with these methods, before any other check:
// a browser sends no key with a preflight.
func answerPreflight(w http.ResponseWriter, r *http.Request, methods string) {
	header := w.Header()
	header.Del("Access-Control-Expose-Headers")
	header.Add("Vary", "Access-Control-Request-Headers")
	header.Set("Access-Control-Allow-Methods", methods)
	if asked := r.Header.Get("Access-Control-Request-Headers"); asked != "" {
		header.Set("Access-Control-Allow-Headers", asked)
	}
	header.Set("Access-Control-Max-Age", preflightAge)
	w.WriteHeader(http.StatusNoContent)
}
