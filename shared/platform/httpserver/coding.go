package httpserver

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
)

// AcceptedCodings is the value of Accept-Encoding in a 415 response (RFC 9110, section 12.5.3).
const AcceptedCodings = "gzip, zstd"

// gzipMemory and zstdMemory are how much memory the decoders use, in bytes. zstdMemory does not include the window.
const gzipMemory, zstdMemory = 96 << 10, 512 << 10

// maxWindow limits the window of zstd in bytes (RFC 9659).
const maxWindow = 8 << 20

// ErrCompressedTooLarge is the error of a compressed body that is larger than its limit.
var ErrCompressedTooLarge = errors.New("the compressed body is too large")

// Reserve is called before a decoder uses memory, in bytes. isLarge means that decoding takes much time or memory.
type Reserve func(memory int64, isLarge bool) error

// Decompress makes the body of a request readable if it is compressed with gzip or zstd. It reads at most the given
// number of compressed bytes. The caller must limit the decompressed bytes, to the same number if reserve is nil. If ok
// is false, the coding is not supported, and the response must be 415.
func Decompress(r *http.Request, most int64, reserve Reserve) (ok bool) {
	if r.Header["Content-Encoding"] == nil {
		return true
	}
	open := openGzip
	switch coding := strings.ToLower(strings.Join(r.Header.Values("Content-Encoding"), ",")); strings.TrimSpace(coding) {
	case "", "identity":
		return true
	case "gzip", "x-gzip":
	case "zstd":
		open = openZstd
	default:
		return false
	}
	if b, is := r.Body.(*body); is {
		b.until = time.Now().Add(compressedTime)
	}
	if reserve == nil {
		reserve = func(int64, bool) error { return nil }
	}
	c := &compressedBody{ReadCloser: r.Body, most: most, reserve: reserve, open: open}
	c.source = bufio.NewReader(readerFunc(c.readSource))
	r.Body, r.ContentLength = c, -1
	return true
}

// decoding holds one element for each body that AwaitCompressed has returned.
var decoding = make(chan struct{}, 8)

// AwaitCompressed reads a request's body if it is compressed, because decoders use memory and must not wait for the
// network. source reads the body up to a limit. Call release after decoding.
func AwaitCompressed(r *http.Request, source io.Reader) (release func(), err error) {
	if r.Header["Content-Encoding"] == nil {
		return func() {}, nil
	}
	packed, err := io.ReadAll(source)
	if err != nil {
		return nil, err
	}
	decoding <- struct{}{}
	r.Body = io.NopCloser(bytes.NewReader(packed))
	return func() { <-decoding }, nil
}

// compressedTime limits how long a compressed body may take to arrive. A few of its bytes may hold megabytes of memory.
const compressedTime = 30 * time.Second

// A compressed body may be at most about emptyBytes larger than its content, because empty blocks and parts take time. A
// body of more bytes counts as large.
const emptyBytes = 256 << 10

// Beyond maxUntrusted bytes, a body may expand at most maxRatio times, because the server's work depends on the
// decompressed size.
const maxUntrusted, maxRatio = 1 << 20, 100

type compressedBody struct {
	io.ReadCloser
	source  *bufio.Reader
	most    int64
	reserve Reserve
	open    func(*compressedBody) (io.Reader, error)
	decoder io.Reader
	// The fields `in` and `out` count the compressed and the decompressed bytes.
	in, out int64
	// failed is the error of the source, which a decoder may replace.
	failed, err error
}

func (b *compressedBody) readSource(p []byte) (n int, err error) {
	switch {
	case b.in > emptyBytes+b.out+b.out/8:
		err = errors.New("the compressed body is larger than its content")
	case b.in > b.most:
		err = ErrCompressedTooLarge
	case b.in > emptyBytes:
		err = b.reserve(0, true)
	}
	if err == nil {
		n, err = b.ReadCloser.Read(p)
	}
	if b.in += int64(n); err != nil && err != io.EOF {
		b.failed = err
	}
	return n, err
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func (b *compressedBody) Read(p []byte) (n int, err error) {
	if b.decoder == nil && b.err == nil {
		b.decoder, b.err = b.open(b)
	}
	for n == 0 && b.err == nil && len(p) > 0 {
		n, b.err = b.decoder.Read(p)
	}
	if b.out += int64(n); b.out > maxUntrusted && b.out > maxRatio*b.in {
		b.err = fmt.Errorf("%w: it expands more than %d times", ErrCompressedTooLarge, maxRatio)
		return 0, b.err
	}
	if n > 0 {
		return n, nil
	}
	if b.failed != nil {
		return 0, b.failed
	}
	return 0, b.err
}

func openGzip(b *compressedBody) (io.Reader, error) {
	if err := b.reserve(gzipMemory, false); err != nil {
		return nil, err
	}
	return gzip.NewReader(b.source)
}

// openZstd reserves the memory of the first frame's window. Later frames must not have a larger one.
func openZstd(b *compressedBody) (io.Reader, error) {
	head, err := b.source.Peek(zstd.HeaderMaxSize)
	if len(head) == 0 {
		return nil, err
	}
	var header zstd.Header
	if err := header.Decode(head); err != nil || header.Skippable {
		return nil, errors.New("the body does not start with a zstd frame")
	}
	window, most := header.WindowSize, uint64(b.most)
	if header.SingleSegment {
		window = header.FrameContentSize
	}
	if window > maxWindow || window > most && header.SingleSegment {
		return nil, zstd.ErrWindowSizeExceeded
	}
	// Streaming encoders declare megabytes for the shortest content, but no window has to be larger than the content.
	if window > most {
		exponent := bits.Len64(most - 1)
		window, head[5] = 1<<exponent, byte(exponent-10)<<3 // RFC 8878, section 3.1.1.1.2
	}
	window = max(window, zstd.MinWindowSize)
	if err := b.reserve(zstdMemory+int64(min(2*window, window+2<<20)), window > emptyBytes); err != nil {
		return nil, err
	}
	return zstd.NewReader(b.source, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(window))
}

// Only responses between these sizes, in bytes, are compressed. Larger ones contain images.
const minCompressed, maxCompressed = 1 << 10, 1 << 20

// isCompressible reports whether a response may be compressed: it must be JSON or a page, have a known length, and
// not be a download.
func isCompressible(header http.Header) bool {
	kind, _, _ := strings.Cut(Field(header, "Content-Type"), ";")
	if kind != "application/json" && kind != "text/html" {
		return false
	}
	size, _ := strconv.Atoi(Field(header, "Content-Length"))
	return size >= minCompressed && size <= maxCompressed &&
		Field(header, "Content-Encoding") == "" && Field(header, "Content-Disposition") == "" && Field(header, "Etag") == ""
}

func acceptsGzip(asked http.Header) bool {
	for coding := range strings.SplitSeq(Field(asked, "Accept-Encoding"), ",") {
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
