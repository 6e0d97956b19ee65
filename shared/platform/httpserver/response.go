package httpserver

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"
)

// If at most smallRest bytes of a request are unread, they are read, so that the connection can stay open.
const smallRest = 64 << 10

const (
	// maxWrite is the largest number of bytes that a peer must read within the stall time. Longer writes are split.
	maxWrite = 64 << 10
	// A peer may delay a response by the stall time and, for each slowestPeer bytes sent, by another second.
	slowestPeer = 4 << 10
)

var errSlowPeer = errors.New("httpserver: the peer reads the response too slowly")

// response limits the time of every write.
//
// A response must reach the client even if the request was not sent completely
// (docs/contract/errors.md#order-of-checks). If a connection is closed with unread bytes, the
// system resets it, and the client loses any bytes that it has not read yet. So the response is
// sent completely, with "Connection: close", and then the rest of the request is read and discarded
// before the connection closes. A client that waits for "100 Continue" gets the response instead.
//
// Such a response needs a Content-Length. Otherwise it is complete only once the rest of the
// request has been discarded.
type response struct {
	http.ResponseWriter
	controller *http.ResponseController
	body       *body
	stall      time.Duration
	status     int
	sent       int64
	// waited is the time that writes have taken. slow means that it was too long.
	waited time.Duration
	slow   bool
	// early means that the response started before the request had been read completely.
	early bool
	// asked is the request's header, or nil if responses are not compressed. held means that the header is sent with the
	// first bytes.
	asked http.Header
	held  bool
}

func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// LimitStall shortens the time that the peer may take to read the next bytes of this response.
func LimitStall(w http.ResponseWriter, to time.Duration) {
	for w != nil {
		if own, ok := w.(*response); ok {
			own.stall = min(own.stall, to)
			return
		}
		wrapped, _ := w.(interface{ Unwrap() http.ResponseWriter })
		if wrapped == nil {
			return
		}
		w = wrapped.Unwrap()
	}
}

// extend restarts the time that the peer has to read the next bytes.
func (w *response) extend(now time.Time) { w.controller.SetWriteDeadline(now.Add(w.stall)) }

func (w *response) WriteHeader(status int) {
	if w.status == 0 && (status >= 200 || status == http.StatusSwitchingProtocols) {
		w.status = status
		if status == http.StatusSwitchingProtocols {
			// The handler reads the unread bytes itself. Without full duplex, net/http would wait for them.
			_ = w.controller.EnableFullDuplex()
		} else {
			w.beforeAnswer()
		}
		if isCompressible(w.Header()) {
			w.Header().Add("Vary", "Accept-Encoding")
			if w.held = acceptsGzip(w.asked); w.held {
				return
			}
		}
	}
	if status < 200 {
		w.extend(time.Now()) // other headers are sent with the first bytes
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *response) release() {
	if w.held {
		w.held = false
		w.ResponseWriter.WriteHeader(w.status)
	}
}

func (w *response) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	sent := p
	if w.held && w.Header().Get("Content-Length") == strconv.Itoa(len(p)) {
		if compressed := tryCompress(p); compressed != nil {
			sent = compressed
			w.Header().Set("Content-Encoding", "gzip")
			w.Header().Set("Content-Length", strconv.Itoa(len(sent)))
		}
	}
	w.release()
	n, err := w.writeInPieces(sent)
	if n == len(sent) {
		n = len(p)
	}
	return n, err
}

func (w *response) writeInPieces(p []byte) (written int, err error) {
	if own, ok := w.ResponseWriter.(*loopWriter); ok && own.canHold(len(p)) && !w.slow {
		written, err = own.Write(p) // without reading the clock
		w.sent += int64(written)
		return written, err
	}
	for {
		err = w.limit(func() (err error) {
			n, err := w.ResponseWriter.Write(p[written:min(len(p), written+maxWrite)])
			written += n
			w.sent += int64(n)
			return err
		})
		if err != nil || written == len(p) {
			return written, err
		}
	}
}

// limit calls a function that may write to the peer. It cuts the connection if the peer reads too slowly.
func (w *response) limit(write func() error) error {
	if w.slow {
		return errSlowPeer
	}
	began := time.Now()
	w.extend(began)
	err := write()
	w.waited += time.Since(began)
	if err == nil && w.waited > w.stall+time.Duration(w.sent)*time.Second/slowestPeer {
		w.slow, err = true, errSlowPeer
		_ = w.controller.SetWriteDeadline(began) // the response must not seem to be complete
	}
	return err
}

func (w *response) FlushError() error {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	return w.limit(func() error {
		w.release()
		return w.controller.Flush()
	})
}

func (w *response) beforeAnswer() {
	b := w.body
	if b == nil || b.ended {
		return
	}
	if rest := b.length - b.read; !b.expecting && rest >= 0 && rest <= smallRest {
		// Usually the rest has already arrived, and the connection can be kept. Do not wait for slow clients.
		b.until = time.Now().Add(smallRestTime)
		_, _ = io.CopyN(io.Discard, b, rest+1) // one more byte to detect the end
		if b.complete {
			return
		}
	}
	if w.controller.EnableFullDuplex() != nil {
		return // not an HTTP/1 connection: none of the above applies
	}
	w.Header().Set("Connection", "close")
	w.early = true
}

func (w *response) finish(now time.Time, drainBytes int64, drainTime time.Duration) {
	if w.slow {
		return // more time would complete the response
	}
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	w.extend(now)
	w.release()
	if w.early && w.controller.Flush() == nil {
		w.body.drain(drainBytes, drainTime)
	}
}
