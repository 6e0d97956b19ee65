package httpserver

import (
	"net/http"
	"net/url"
	"strings"
)

// Parameter returns the first value of a query parameter, or "" if it is missing or invalid. Unlike
// URL.Query, it does not store the other parameters, of which a request line can hold 20,000.
func Parameter(r *http.Request, name string) string {
	for pair := range strings.SplitSeq(r.URL.RawQuery, "&") {
		key, value, _ := strings.Cut(pair, "=")
		if key != name {
			continue
		}
		value, err := url.QueryUnescape(value)
		if err != nil {
			return ""
		}
		return value
	}
	return ""
}

// TrimUpgrade removes header fields that no client needs and fields that are too long, because a WebSocket library
// would split them into many strings.
func TrimUpgrade(header http.Header) {
	header.Del("Sec-WebSocket-Extensions")
	header.Del("Sec-WebSocket-Protocol")
	for _, field := range []string{"Connection", "Upgrade"} {
		size := 0
		for _, line := range header[field] {
			size += 1 + len(line)
		}
		if size > maxUpgrade {
			header.Del(field)
		}
	}
}

const maxUpgrade = 256
