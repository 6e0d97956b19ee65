package gateway

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"cutroom/shared/domain/usage"
)

// maxUnsent limits how many bytes of a stream are collected before they are sent, while more has
// already arrived.
const maxUnsent = 16 << 10

var (
	keepAliveComment = []byte(": keep-alive\n\n")
	doneEvent        = []byte("data: [DONE]\n\n")
)

// streamWriter sends a stream to the caller. The header goes with the first chunk, so that an earlier
// failure still has its own status, or with the first keep-alive if the first chunk is late.
//
// Only one goroutine may use it; its timer is safe.
type streamWriter struct {
	w          http.ResponseWriter
	controller *http.ResponseController
	trailers   bool
	every      time.Duration
	// out has the bytes to send next.
	out []byte

	mu        sync.Mutex
	keepAlive *time.Timer
	// State of the stream: the header was sent, no more keep-alives may be sent.
	begun, keepAliveStopped bool
}

// newStreamWriter returns a writer of a stream that has not started.
func newStreamWriter(w http.ResponseWriter, keepAlive time.Duration, trailers bool) *streamWriter {
	return &streamWriter{w: w, controller: http.NewResponseController(w), trailers: trailers, every: keepAlive}
}

// startKeepAlive starts the keep-alives, once; stopKeepAlive ends them. They start the stream, so
// they must not start before an upstream is found. It does nothing for a nil writer.
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

// setHeader sets a header field. It returns false if the header was already sent.
func (s *streamWriter) setHeader(name, value string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.begun {
		s.w.Header().Set(name, value)
	}
	return !s.begun
}

// endKeepAlive ends the keep-alives. The lock must be held.
func (s *streamWriter) endKeepAlive() {
	s.keepAliveStopped = true
	if s.keepAlive != nil {
		s.keepAlive.Stop()
	}
}

// hasBegun reports whether the caller has received anything. A nil writer means an answer that is not
// streamed.
func (s *streamWriter) hasBegun() bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.begun
}

// sendKeepAlive sends a comment. If the caller has left, the next send fails.
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
	// Proxies must not buffer chunks; nginx reads this field.
	header.Set("X-Accel-Buffering", "no")
	if s.trailers {
		header.Set("Trailer", "X-Tokens-Used")
	}
	s.w.WriteHeader(http.StatusOK)
}

// send sends out. It fails if the caller has left.
func (s *streamWriter) send() error {
	if len(s.out) == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endKeepAlive()
	s.begin()
	_, err := s.w.Write(s.out)
	if s.out = s.out[:0]; cap(s.out) > maxKeptBuffer {
		s.out = nil
	}
	if err != nil {
		return err
	}
	return s.controller.Flush()
}

// finish sends the end of the stream, which is in out, and the usage. cost is empty without a
// price. It is not announced as a trailer, because the serving row is known only after the header.
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

// stopKeepAlive ends the keep-alives. After that only one goroutine writes, and it may change the
// header. It does nothing for a nil writer.
func (s *streamWriter) stopKeepAlive() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endKeepAlive()
}
