package gateway

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"cutroom/shared/domain/usage"
)

// maxUnsent is how much of a stream is gathered before it is sent, in bytes,
// while more has already arrived.
const maxUnsent = 16 << 10

var (
	keepAliveComment = []byte(": keep-alive\n\n")
	doneEvent        = []byte("data: [DONE]\n\n")
)

// streamWriter sends a stream to the caller. The header is sent with the first
// chunk, so that an earlier failure still has its own status; or with the first
// keep-alive, if the first chunk takes long.
//
// One goroutine uses it, besides its own timer.
type streamWriter struct {
	w          http.ResponseWriter
	controller *http.ResponseController
	trailers   bool
	every      time.Duration
	// out is what is sent next.
	out []byte

	mu        sync.Mutex
	keepAlive *time.Timer
	// begun reports whether the header was sent, keepAliveStopped whether no
	// more keep-alives may be sent.
	begun, keepAliveStopped bool
}

// newStreamWriter returns a writer of a stream that has not begun.
func newStreamWriter(w http.ResponseWriter, keepAlive time.Duration, trailers bool) *streamWriter {
	return &streamWriter{w: w, controller: http.NewResponseController(w), trailers: trailers, every: keepAlive}
}

// startKeepAlive starts the keep-alives, once; stopKeepAlive ends them. They begin
// the stream, and are not started before an upstream has been found. A nil writer
// has none.
func (s *streamWriter) startKeepAlive() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.keepAlive == nil && !s.keepAliveStopped {
		s.keepAlive = time.AfterFunc(s.every, s.sendKeepAlive)
	}
}

// setHeader sets a field of the header, and reports whether that was not sent yet.
func (s *streamWriter) setHeader(name, value string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.begun {
		s.w.Header().Set(name, value)
	}
	return !s.begun
}

// endKeepAlive ends the keep-alives; the lock is held.
func (s *streamWriter) endKeepAlive() {
	s.keepAliveStopped = true
	if s.keepAlive != nil {
		s.keepAlive.Stop()
	}
}

// hasBegun reports whether the caller has been sent anything. A nil writer
// stands for an answer that is not streamed.
func (s *streamWriter) hasBegun() bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.begun
}

// sendKeepAlive sends a comment. If the caller has gone, the next send fails.
func (s *streamWriter) sendKeepAlive() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.keepAliveStopped {
		return
	}
	s.begin()
	_, _ = s.w.Write(keepAliveComment)
	_ = s.controller.Flush()
	s.keepAlive.Reset(s.every)
}

// begin sends the header, once.
func (s *streamWriter) begin() {
	if s.begun {
		return
	}
	s.begun = true
	header := s.w.Header()
	header["Content-Type"] = streamType
	header["Cache-Control"] = noStore
	// Proxies in front must not hold chunks back; nginx reads this field.
	header.Set("X-Accel-Buffering", "no")
	if s.trailers {
		header.Set("Trailer", "X-Tokens-Used")
	}
	s.w.WriteHeader(http.StatusOK)
}

// send sends what is in out. It fails if the caller has gone.
func (s *streamWriter) send() error {
	if len(s.out) == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endKeepAlive()
	s.begin()
	_, err := s.w.Write(s.out)
	s.out = s.out[:0]
	if err != nil {
		return err
	}
	return s.controller.Flush()
}

// finish sends the end of the stream, which is in out, and what it used. cost
// is empty where there is no price; it is not announced, as the row that serves a
// call is known later than the head of its stream.
func (s *streamWriter) finish(counts usage.Counts, cost string) error {
	err := s.send()
	if s.trailers {
		s.w.Header().Set("X-Tokens-Used", strconv.FormatInt(billed(counts), 10))
		if cost != "" {
			s.w.Header().Set(http.TrailerPrefix+costHeader, cost)
		}
	}
	return err
}

// stopKeepAlive ends the keep-alives: from then on only one goroutine writes,
// and may change the header. A nil writer has none.
func (s *streamWriter) stopKeepAlive() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endKeepAlive()
}
