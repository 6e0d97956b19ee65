package upstream

import (
	"io"
	"net/http/httputil"
	"strings"
	"time"
)

// maxTrailer is the maximum size of a response's trailer in bytes.
const maxTrailer = 4 << 10

// h1Body is a response's body. Once it has been read completely, its connection can be reused.
type h1Body struct {
	conn *h1Conn
	// chunks reads a chunked body. For any other body, left is the number of unread bytes, or -1 if unknown.
	chunks io.Reader
	left   int64
	// last means that the connection is closed after this response.
	last          bool
	whole, closed bool
}

// frame determines from the head where the body ends.
func (b *h1Body) frame(r *Reply, chunked bool) {
	switch {
	case r.Status == 204 || r.Status == 304:
		// Status 204 and 304 have no body. If the server sends a body anyway, it must not be read
		// as the next response.
		r.Length, b.left, b.last = 0, 0, true
	case chunked:
		// If Content-Length is also present, do not reuse the connection, because readers disagree about where the
		// response ends (RFC 9112, section 6.3).
		b.last = b.last || r.Length >= 0
		r.Length = -1
		b.chunks = httputil.NewChunkedReader(b.conn.reader)
	case r.Length >= 0:
		b.left = r.Length
	default:
		b.last, b.left = true, -1
	}
	r.Framed = chunked || r.Length >= 0
	r.Body = b
}

func (b *h1Body) Ended() bool { return b.whole }

func (b *h1Body) Allow(silence time.Duration) { b.conn.silence = silence }

func (b *h1Body) Read(p []byte) (n int, err error) {
	switch {
	case b.whole || len(p) == 0:
	case b.chunks != nil:
		if n, err = b.chunks.Read(p); err == io.EOF {
			if err = b.skipTrailer(); err == nil {
				b.whole = true
			}
		}
	case b.left < 0:
		if n, err = b.conn.reader.Read(p); err == io.EOF {
			b.whole, err = true, nil
		}
	case b.left > 0:
		n, err = b.conn.reader.Read(p[:min(int64(len(p)), b.left)])
		b.left -= int64(n)
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
	}
	if b.chunks == nil && b.left == 0 {
		b.whole = true
	}
	if b.whole && n == 0 && err == nil {
		err = io.EOF
	}
	return n, err
}

// skipTrailer reads the trailer after the last chunk. Every line must end with CR LF.
func (b *h1Body) skipTrailer() error {
	for left := maxTrailer; ; {
		line, err := b.conn.reader.ReadSlice('\n')
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return err
		}
		left -= len(line)
		field, ended := strings.CutSuffix(view(line), "\r\n")
		if left < 0 || !ended {
			return errNoHTTP
		}
		if field == "" {
			return nil
		}
		if _, _, ok := cutField(field); !ok {
			return errNoHTTP
		}
	}
}

func (b *h1Body) Close() error {
	if b.closed {
		return nil
	}
	b.closed = true
	// Stop returns false if the context has ended. In that case, the connection has been or will be interrupted.
	if b.conn.ended.Stop() && b.whole && !b.last && b.conn.isSent() && b.conn.reader.Buffered() == 0 {
		clear(b.conn.pieces[:]) // they may be large
		b.conn.transport.keep(b.conn)
		return nil
	}
	err := b.conn.conn.Close()
	b.conn.awaitSent()
	return err
}
