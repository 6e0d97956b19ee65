package httpserver

import (
	"compress/gzip"
	"io"
	"net/http"
	"strings"
)

// AcceptedCodings is the value of Accept-Encoding in a 415 response (RFC 9110, section 12.5.3).
const AcceptedCodings = "gzip"

// DecoderMemory is how much memory the decoder of a body takes, in bytes.
const DecoderMemory = 96 << 10

// Decompress makes the body of a request readable if it is compressed with gzip, and reports
// whether it is. It reads at most the given number of compressed bytes; the caller must limit the
// decompressed ones. If ok is false, the coding is not supported, and the response must be 415.
func Decompress(r *http.Request, most int64) (compressed, ok bool) {
	switch coding := strings.ToLower(strings.Join(r.Header.Values("Content-Encoding"), ",")); strings.TrimSpace(coding) {
	case "", "identity":
		return false, true
	case "gzip", "x-gzip":
		r.Body, r.ContentLength = &gzipBody{Closer: r.Body, source: io.LimitReader(r.Body, most)}, -1
		return true, true
	}
	return false, false
}

type gzipBody struct {
	io.Closer
	source  io.Reader
	decoder *gzip.Reader
	err     error
}

func (b *gzipBody) Read(p []byte) (n int, err error) {
	if b.decoder == nil && b.err == nil {
		b.decoder, b.err = gzip.NewReader(b.source)
	}
	if b.err == nil {
		n, b.err = b.decoder.Read(p)
	}
	return n, b.err
}
