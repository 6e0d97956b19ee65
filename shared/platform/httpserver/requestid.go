package httpserver

import (
	"math/rand/v2"
	"net/http"
)

const (
	// See docs/contract/README.md#conventions.
	requestIDHeader = "X-Request-Id"
	maxRequestID    = 128
)

// Field returns the first value of a header field, or "". Unlike header.Get, it does not convert the name, which must
// have its canonical form.
func Field(header http.Header, name string) string {
	if values := header[name]; len(values) > 0 {
		return values[0]
	}
	return ""
}

// newRequestID returns an id like crypto/rand.Text. It takes less time, because clients may choose ids anyway.
func newRequestID() string {
	var id [26]byte
	bits := rand.Uint64()
	for i := range id {
		if i == len(id)/2 {
			bits = rand.Uint64()
		}
		id[i] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"[bits%32]
		bits /= 32
	}
	return string(id[:])
}

// requestID returns the client's id, if it has 1 to 128 printable ASCII characters, or a new one.
func requestID(header http.Header, newID func() string) string {
	id := Field(header, requestIDHeader)
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
