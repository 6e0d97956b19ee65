package httpserver

import "net/http"

const (
	// requestIDHeader is on every answer (docs/contract/README.md#conventions).
	requestIDHeader = "X-Request-Id"
	// maxRequestID is how long an id may be that a client sends.
	maxRequestID = 128
)

// requestID gives the id that the client sent, when it is 1 to 128 printable
// ASCII characters, else a new one.
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
