package gateway

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"cutroom/shared/domain/usage"
	"cutroom/shared/platform/httpserver"
)

// A stream occupies a place on its server until it has been sent. So callers have less time than for other responses.
const callerDelay = 20 * time.Second

// maxUnsent is the maximum number of bytes to collect before sending while more input is available.
const maxUnsent = 16 << 10

var (
	keepAliveComment = []byte(": keep-alive\n\n")
	doneEvent        = []byte("data: [DONE]\n\n")
)

// streamWriter sends a stream to the caller. It sends the header with the first chunk or
// keep-alive, so that an earlier failure still gets its own status. Only one goroutine may use it.
type streamWriter struct {
	w          http.ResponseWriter
	controller *http.ResponseController
	trailers   bool
	every      time.Duration
	// kind is the Content-Type of a response that is not a stream of events, or nil.
	kind []string
	out  []byte
	// delay is nil if the call keeps its slot in any case.
	delay *delay

	mu        sync.Mutex
	keepAlive *time.Timer
	// started means that the header has been sent. keepAliveStopped means that no more keep-alives may be sent.
	started, keepAliveStopped bool
	err                       error // the error of the last send
}

func newStreamWriter(w http.ResponseWriter, keepAlive time.Duration, trailers bool) *streamWriter {
	return &streamWriter{w: w, controller: http.NewResponseController(w), trailers: trailers, every: keepAlive}
}

// startKeepAlive starts the keep-alives if they have not been started. It must not be called until an upstream
// has been found, because a keep-alive starts the stream. It does nothing on a nil writer.
func (s *streamWriter) startKeepAlive() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.keepAlive == nil && !s.keepAliveStopped && s.every > 0 {
		s.keepAlive = time.AfterFunc(s.every, s.sendKeepAlive)
	}
}

func (s *streamWriter) setHeader(name, value string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.started {
		s.w.Header().Set(name, value)
	}
	return !s.started
}

// The lock must be held.
func (s *streamWriter) endKeepAlive() {
	s.keepAliveStopped = true
	if s.keepAlive != nil {
		s.keepAlive.Stop()
	}
}

// hasStarted reports whether anything has been sent to the caller. It returns false for a nil writer.
func (s *streamWriter) hasStarted() bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.started
}

// sendKeepAlive sends a comment. If the caller has disconnected, the next send fails.
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

func (s *streamWriter) begin() {
	if s.started {
		return
	}
	s.started = true
	httpserver.LimitStall(s.w, callerDelay)
	header := s.w.Header()
	header["Content-Type"] = streamType
	if s.kind != nil {
		header["Content-Type"] = s.kind
	}
	header["Cache-Control"] = noStore
	header["X-Accel-Buffering"] = unbuffered
	if s.trailers {
		header["Trailer"] = tokensTrailer
	}
	s.w.WriteHeader(http.StatusOK)
}

// send sends the collected output. It fails if the caller has disconnected or reads too slowly.
func (s *streamWriter) send() error { return s.write(true) }

// write is send, but without flush the output may be sent only with the end of the response.
func (s *streamWriter) write(flush bool) error {
	if len(s.out) == 0 || s.err != nil {
		return s.err
	}
	if s.delay != nil {
		s.delay.begin()
		defer s.delay.end()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endKeepAlive()
	s.begin()
	if _, s.err = s.w.Write(s.out); s.err == nil && flush {
		s.err = s.controller.Flush()
	}
	if s.out = s.out[:0]; cap(s.out) > maxKeptBuffer {
		s.out = nil
	}
	return s.err
}

// finish writes the end of the stream and the usage. cost is empty if the model has no price. The trailer with the
// cost is not announced, because the serving row is known only after the header has been sent.
func (s *streamWriter) finish(flush bool, counts usage.Counts, cost string) error {
	err := s.write(flush)
	if s.trailers {
		s.w.Header().Set("X-Tokens-Used", strconv.FormatInt(billed(counts), 10))
		if cost != "" {
			s.w.Header().Set(http.TrailerPrefix+costHeader, cost)
		}
	}
	return err
}

// stopKeepAlive stops the keep-alives. After that, only one goroutine changes the header.
func (s *streamWriter) stopKeepAlive() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endKeepAlive()
}
