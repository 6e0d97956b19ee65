package httpserver

import (
	"bufio"
	"compress/gzip"
	"errors"
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
		r.Body, r.ContentLength = newGzipBody(r.Body, most), -1
		return true, true
	}
	return false, false
}

// maxMembers limits the parts of a gzip body. A million empty ones would take half a second.
const maxMembers = 100

// emptyBytes is how many compressed bytes may precede as many decompressed ones. A stream may have any number of
// blocks without content, which cost time but no memory.
const emptyBytes = 256 << 10

var errEmpty = errors.New("the gzip body is larger than its content")

type gzipBody struct {
	io.Closer
	source  *bufio.Reader
	decoder *gzip.Reader
	members int
	// in and out count the compressed and the decompressed bytes.
	in, out int64
	err     error
}

func newGzipBody(body io.ReadCloser, most int64) *gzipBody {
	b, limited := &gzipBody{Closer: body}, io.LimitReader(body, most)
	b.source = bufio.NewReader(readerFunc(func(p []byte) (int, error) {
		if b.in > emptyBytes+b.out+b.out/8 {
			return 0, errEmpty
		}
		n, err := limited.Read(p)
		b.in += int64(n)
		return n, err
	}))
	return b
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func (b *gzipBody) Read(p []byte) (n int, err error) {
	for n == 0 && b.err == nil && len(p) > 0 {
		if b.decoder == nil {
			b.decoder, b.err = gzip.NewReader(b.source)
			if b.err != nil {
				break
			}
			b.decoder.Multistream(false)
		}
		if n, b.err = b.decoder.Read(p); b.err == io.EOF {
			b.next()
		}
	}
	if b.out += int64(n); n > 0 {
		return n, nil
	}
	return 0, b.err
}

// next continues with another part of the body, if there is one.
func (b *gzipBody) next() {
	if _, err := b.source.Peek(1); err != nil {
		return
	}
	if b.members++; b.members == maxMembers {
		b.err = errors.New("the gzip body has too many parts")
	} else if b.err = b.decoder.Reset(b.source); b.err == nil {
		b.decoder.Multistream(false)
	}
}
