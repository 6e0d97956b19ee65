package demomodel

import (
	"encoding/json"
	"net/http"
)

// stream writes Server-Sent Events, and flushes each.
type stream struct {
	w          http.ResponseWriter
	controller *http.ResponseController
}

func newStream(w http.ResponseWriter) *stream {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	w.WriteHeader(http.StatusOK)
	return &stream{w, http.NewResponseController(w)}
}

// send sends a chunk. It fails if the caller has left.
func (s *stream) send(chunk any) error {
	text, err := json.Marshal(chunk)
	if err != nil {
		return err
	}
	return s.write(text)
}

// end sends the final [DONE].
func (s *stream) end() error { return s.write([]byte("[DONE]")) }

func (s *stream) write(data []byte) error {
	if _, err := s.w.Write(append(append([]byte("data: "), data...), "\n\n"...)); err != nil {
		return err
	}
	return s.controller.Flush()
}
