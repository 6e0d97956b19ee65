package httpserver

import (
	"io"
	"net/http"
	"time"
)

// smallRest is how much of a request is read before the answer rather than after, so that the
// connection can be kept.
const smallRest = 64 << 10

// response is an answer with a time limit on every write.
//
// An answer must reach the client even if the request was not sent to its end
// (docs/contract/errors.md#order-of-checks). Closing a connection with unread bytes makes the
// system reset it, and a reset discards bytes that the client has not read yet. So the answer is
// sent completely, with "Connection: close", and then the rest of the request is read and dropped
// before the connection closes. A client that waits for "100 Continue" gets the answer instead.
//
// Such an answer needs a Content-Length: otherwise it is complete only when the rest of the request
// has been dropped.
type response struct {
	http.ResponseWriter
	controller *http.ResponseController
	body       *body
	stall      time.Duration
	status     int
	sent       int64
	// early means that the request was not read to its end before the answer.
	early bool
}

// Unwrap is for http.ResponseController.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// extend restarts the peer's time to read the next bytes.
func (w *response) extend() { w.controller.SetWriteDeadline(time.Now().Add(w.stall)) }

func (w *response) WriteHeader(status int) {
	if w.status == 0 && (status >= 200 || status == http.StatusSwitchingProtocols) {
		w.status = status
		if status == http.StatusSwitchingProtocols {
			// The handler that takes the connection over also takes the unread bytes; net/http
			// would wait for it. If this fails, the connection does not support it.
			_ = w.controller.EnableFullDuplex()
		} else {
			w.beforeAnswer()
		}
	}
	w.extend()
	w.ResponseWriter.WriteHeader(status)
}

func (w *response) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	w.extend()
	n, err := w.ResponseWriter.Write(p)
	w.sent += int64(n)
	return n, err
}

// FlushError sends the written bytes; http.ResponseController calls it.
func (w *response) FlushError() error {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	w.extend()
	return w.controller.Flush()
}

// beforeAnswer handles the unread part of the request.
func (w *response) beforeAnswer() {
	b := w.body
	if b == nil || b.ended {
		return
	}
	if rest := b.length - b.read; !b.expecting && rest >= 0 && rest <= smallRest {
		// Usually it has already arrived, and the connection can be kept. The server does not wait
		// for a slow client.
		b.until = time.Now().Add(smallRestTime)
		_, _ = io.CopyN(io.Discard, b, rest+1) // one more byte, to see the end
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

func (w *response) finish(drainBytes int64, drainTime time.Duration) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	w.extend()
	if w.early && w.controller.Flush() == nil {
		w.body.drain(drainBytes, drainTime)
	}
}
