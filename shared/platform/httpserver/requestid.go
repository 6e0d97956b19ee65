package httpserver

import "net/http"

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
