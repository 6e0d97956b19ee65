package httpserver

import "net/http"

const (
	// See docs/contract/README.md#conventions.
	requestIDHeader = "X-Request-Id"
	maxRequestID    = 128
)

// requestID returns the client's id, if it has 1 to 128 printable ASCII characters, or a new one.
func requestID(header http.Header, newID func() string) string {
	id := header.Get(requestIDHeader)
	if id == "" || len(id) > maxRequestID {
		return newID()
	}
	for i := range len(id) {
		if id[i] < ' ' || id[i] > '~' {
			return newID()
		}
	}
	return id
}
