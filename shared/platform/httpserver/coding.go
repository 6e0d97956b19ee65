package httpserver

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// AcceptedCodings is the value of Accept-Encoding in a 415 response (RFC 9110, section 12.5.3).
const AcceptedCodings = "gzip"

// DecoderMemory is how much memory a body's decoder uses, in bytes.
const DecoderMemory = 96 << 10

// ErrCompressedTooLarge is the error of a compressed body that is larger than its limit.
var ErrCompressedTooLarge = errors.New("the compressed body is too large")

// Decompress makes the body of a request readable if it is compressed with gzip, and reports whether it is. It reads
// at most the given number of compressed bytes; the caller must limit the decompressed ones. It calls the function
// `large`, if not nil, before it reads more than 256 KiB of compressed bytes. If ok is false, the coding is not
// supported, and the response must be 415.
func Decompress(r *http.Request, most int64, large func() error) (compressed, ok bool) {
	switch coding := strings.ToLower(strings.Join(r.Header.Values("Content-Encoding"), ",")); strings.TrimSpace(coding) {
	case "", "identity":
		return false, true
	case "gzip", "x-gzip":
		if b, is := r.Body.(*body); is {
			b.until = time.Now().Add(compressedTime)
		}
		r.Body, r.ContentLength = newGzipBody(r.Body, most, large), -1
		return true, true
	}
	return false, false
}

// compressedTime limits how long a compressed body may take to arrive. A few of its bytes may hold megabytes of memory.
const compressedTime = 30 * time.Second

// maxMembers limits the parts of a gzip body. A million empty parts would take half a second.
const maxMembers = 100

// A gzip body may be at most about emptyBytes larger than its content. A stream may have any number of empty blocks,
// which cost time but no memory.
const emptyBytes = 256 << 10

var errEmpty = errors.New("the gzip body is larger than its content")

type gzipBody struct {
	io.Closer
	source  *bufio.Reader
	decoder *gzip.Reader
	members int
	// The fields `in` and `out` count the compressed and the decompressed bytes.
	in, out int64
	err     error
}

func newGzipBody(body io.ReadCloser, most int64, large func() error) *gzipBody {
	b := &gzipBody{Closer: body}
	b.source = bufio.NewReader(readerFunc(func(p []byte) (n int, err error) {
		if b.in > emptyBytes && large != nil {
			if err = large(); err != nil {
				return 0, err
			}
			large = nil
		}
		switch {
		case b.in > emptyBytes+b.out+b.out/8:
			return 0, errEmpty
		case b.in > most:
			return 0, ErrCompressedTooLarge
		}
		n, err = body.Read(p)
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

// Only responses between these sizes, in bytes, are compressed. Larger ones contain images.
const minCompressed, maxCompressed = 1 << 10, 1 << 20

// isCompressible reports whether a response may be compressed: it must be JSON or a page, have a known length, and
// not be a download.
func isCompressible(header http.Header) bool {
	kind, _, _ := strings.Cut(header.Get("Content-Type"), ";")
	size, _ := strconv.Atoi(header.Get("Content-Length"))
	return (kind == "application/json" || kind == "text/html") && size >= minCompressed && size <= maxCompressed &&
		header.Get("Content-Encoding") == "" && header.Get("Content-Disposition") == "" && header.Get("ETag") == ""
}

func acceptsGzip(r *http.Request) bool {
	for coding := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		name, weight, _ := strings.Cut(coding, ";")
		_, q, _ := strings.Cut(weight, "=")
		if strings.EqualFold(strings.TrimSpace(name), "gzip") {
			return strings.Trim(q, "0. ") != "" || weight == ""
		}
	}
	return false
}

// compressors holds a fixed number of writers, because each takes 1.2 MB. They are created on first use.
var compressors = func() chan *gzip.Writer {
	free := make(chan *gzip.Writer, 2)
	for range cap(free) {
		free <- nil
	}
	return free
}()

// Compress returns a gzip member. Unlike tryCompress, it waits for a free writer.
func Compress(text []byte) []byte { return compress(<-compressors, text) }

// tryCompress returns nil if no writer is free, because callers must not wait for each other's responses.
func tryCompress(text []byte) []byte {
	select {
	case w := <-compressors:
		return compress(w, text)
	default:
		return nil
	}
}

func compress(w *gzip.Writer, text []byte) []byte {
	defer func() { compressors <- w }()
	if w == nil {
		w, _ = gzip.NewWriterLevel(nil, gzip.BestSpeed) // the level is valid
	}
	out := bytes.NewBuffer(make([]byte, 0, len(text))) // growing would take several times as much
	w.Reset(out)
	_, _ = w.Write(text) // a buffer's writes cannot fail
	_ = w.Close()
	return out.Bytes()
}
