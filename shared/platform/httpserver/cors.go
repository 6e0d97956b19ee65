package httpserver

import (
	"net/http"
	"slices"
)

// Origins lists the origins from which browsers may call. If it is empty or contains "*", any origin may.
type Origins []string

// preflightAge is the maximum that Chromium accepts, in seconds.
const preflightAge = "7200"

func (o Origins) Allows(origin string) bool {
	return len(o) == 0 || slices.Contains(o, "*") || slices.Contains(o, origin)
}

var anyOrigin = []string{"*"}

// Allow lets pages from these origins read any response and the header fields in exposed, a single value.
// Keys are never sent in cookies, so no response needs Access-Control-Allow-Credentials.
func (o Origins) Allow(header http.Header, r *http.Request, exposed []string) {
	if len(o) == 0 || slices.Contains(o, "*") {
		header["Access-Control-Allow-Origin"] = anyOrigin
	} else {
		header.Add("Vary", "Origin")
		origin := r.Header.Get("Origin")
		if !slices.Contains(o, origin) {
			return
		}
		header.Set("Access-Control-Allow-Origin", origin)
	}
	header["Access-Control-Expose-Headers"] = exposed
}

// IsPreflight follows the Fetch standard, "CORS-preflight request".
func IsPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Origin") != "" &&
		r.Header.Get("Access-Control-Request-Method") != ""
}

// AnswerPreflight must run before all checks, because browsers send no key with a preflight.
func AnswerPreflight(w http.ResponseWriter, r *http.Request, methods string) {
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
