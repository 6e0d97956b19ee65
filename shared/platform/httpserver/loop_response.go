package httpserver

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"
)

// maxLoopOut is how many bytes of a response are collected before they are sent.
const maxLoopOut = 16 << 10

// maxUnchunked is the length in bytes up to which a response gets a Content-Length that the handler did not set.
const maxUnchunked = 2048

// loopWriter writes a response as net/http does, but does not guess the type of the body. It sends the head with the
// first bytes of the body.
type loopWriter struct {
	call   *loopCall
	conn   *loopConn
	header http.Header
	status int
	// length is the declared length, or -1. written is how many bytes of the body the handler has written.
	length, written int64
	// pending is the part of a body of unknown length that has not been sent yet.
	pending []byte
	// ended means that the head is complete. chunked means that the body is sent in chunks.
	ended, chunked bool
	// trailers means that trailers were known when the header was written, and announced has the names in it.
	trailers  bool
	announced []string
	closes    bool
	err       error
}

func (w *loopWriter) Header() http.Header { return w.header }

func (w *loopWriter) SetReadDeadline(t time.Time) error { return w.conn.conn.SetReadDeadline(t) }

func (w *loopWriter) SetWriteDeadline(t time.Time) error { return w.conn.conn.SetWriteDeadline(t) }

func (w *loopWriter) EnableFullDuplex() error { return nil }

func (w *loopWriter) WriteHeader(status int) {
	if w.status != 0 || status < 200 {
		return
	}
	w.status = status
	out := append(w.conn.out[:0], "HTTP/1.1 "...)
	out = append(strconv.AppendInt(out, int64(status), 10), ' ')
	out = append(append(out, http.StatusText(status)...), "\r\n"...)
	dated := false
	for name, values := range w.header {
		w.trailers = w.trailers || strings.HasPrefix(name, http.TrailerPrefix)
		switch name {
		case "Trailer":
			w.announced, w.trailers = values, true
		case "Date":
			dated = true
		case "Content-Length":
			if !w.hasBody() {
				continue
			}
			n, err := strconv.ParseInt(values[0], 10, 64)
			if err != nil || n < 0 {
				continue
			}
			w.length = n
		case "Connection":
			if strings.EqualFold(values[0], "close") {
				w.closes = true // endHead adds the field
				continue
			}
		case "Transfer-Encoding":
			continue
		}
		out = appendField(out, name, values)
	}
	if !dated {
		out = append(out, *w.conn.loops.date.Load()...)
	}
	w.conn.out = out
}

func appendField(out []byte, name string, values []string) []byte {
	switch name {
	case "Access-Control-Allow-Origin", "Access-Control-Expose-Headers", "Cache-Control", "Content-Length", "Content-Type",
		"X-Request-Id", "X-Tokens-Used": // saves time
	default:
		if !httpguts.ValidHeaderFieldName(name) { // such as the names of trailers
			return out
		}
	}
	for _, value := range values {
		if strings.IndexByte(value, '\r') >= 0 || strings.IndexByte(value, '\n') >= 0 {
			value = strings.NewReplacer("\r", " ", "\n", " ").Replace(value)
		}
		out = append(append(append(append(out, name...), ": "...), value...), "\r\n"...)
	}
	return out
}

func (w *loopWriter) hasBody() bool {
	return w.status != http.StatusNoContent && w.status != http.StatusNotModified
}

// endHead adds the fields that depend on the body.
func (w *loopWriter) endHead() {
	if w.ended {
		return
	}
	w.ended = true
	out := w.conn.out
	if w.closes = w.closes || w.call.body.failed || w.conn.isStopping(); w.closes {
		out = append(out, "Connection: close\r\n"...)
	}
	if w.length < 0 && w.hasBody() {
		w.chunked = true
		out = append(out, "Transfer-Encoding: chunked\r\n"...)
	}
	w.conn.out = append(out, "\r\n"...)
}

func (w *loopWriter) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	switch {
	case !w.hasBody():
		return 0, http.ErrBodyNotAllowed
	case w.err != nil || len(p) == 0:
		return 0, w.err
	}
	w.written += int64(len(p))
	if w.length < 0 {
		w.pending = append(w.pending, p...)
		if len(w.pending) > maxUnchunked {
			w.endHead()
		}
		if len(w.pending) > maxLoopOut {
			return len(p), w.FlushError()
		}
		return len(p), nil
	}
	if w.written > w.length {
		return 0, http.ErrContentLength
	}
	w.endHead()
	if len(w.conn.out)+len(p) <= maxLoopOut {
		w.conn.out = append(w.conn.out, p...)
		return len(p), nil
	}
	if err := w.send(); err != nil {
		return 0, err
	}
	n, err := w.conn.write(p)
	return n, w.failed(err)
}

// canHold reports whether the next Write sends nothing if it has the given number of bytes. The header must be written.
func (w *loopWriter) canHold(bytes int) bool {
	const endOfHead = 128 // more than endHead adds
	return len(w.conn.out)+len(w.pending)+bytes+endOfHead <= maxLoopOut
}

func (w *loopWriter) FlushError() error {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	w.endHead()
	w.appendChunk()
	return w.send()
}

func (w *loopWriter) appendChunk() {
	if !w.chunked || len(w.pending) == 0 {
		return
	}
	out := strconv.AppendInt(w.conn.out, int64(len(w.pending)), 16)
	out = append(append(append(out, "\r\n"...), w.pending...), "\r\n"...)
	w.conn.out, w.pending = out, w.pending[:0]
}

func (w *loopWriter) send() error {
	if w.err != nil || len(w.conn.out) == 0 {
		return w.err
	}
	_, err := w.conn.write(w.conn.out)
	if w.conn.out = w.conn.out[:0]; cap(w.conn.out) > 2*maxLoopOut {
		w.conn.out = nil
	}
	return w.failed(err)
}

// failed ends the request's context if the client cannot be reached.
func (w *loopWriter) failed(err error) error {
	if err != nil {
		w.err, w.closes = err, true
		w.call.cancel()
	}
	return err
}

// finish sends the rest of the response.
func (w *loopWriter) finish() error {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	if !w.ended && w.length < 0 && w.hasBody() && !w.trailers {
		w.length = int64(len(w.pending))
		w.conn.out = appendField(w.conn.out, "Content-Length", []string{strconv.FormatInt(w.length, 10)})
		w.endHead()
		w.conn.out = append(w.conn.out, w.pending...)
		return w.send()
	}
	w.endHead()
	if w.appendChunk(); w.chunked {
		w.conn.out = append(append(append(w.conn.out, "0\r\n"...), w.trailer()...), "\r\n"...)
	}
	if w.length >= 0 && w.written != w.length && w.hasBody() {
		w.closes = true
	}
	return w.send()
}

// trailer returns the fields that the header announced or that were set with http.TrailerPrefix.
func (w *loopWriter) trailer() (out []byte) {
	for _, names := range w.announced {
		for name := range strings.SplitSeq(names, ",") {
			name = http.CanonicalHeaderKey(strings.TrimSpace(name))
			out = appendField(out, name, w.header[name])
		}
	}
	for name, values := range w.header {
		if name, ok := strings.CutPrefix(name, http.TrailerPrefix); ok {
			out = appendField(out, name, values)
		}
	}
	return out
}
