// Package comfyuitest is a fake ComfyUI server for tests. It supports the calls that package comfyui makes and
// responds like the real program; a test compares its responses with recorded ones. It runs no nodes. Instead, it
// makes the saved files from the seed.
package comfyuitest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/coder/websocket"
)

// With the zero value of an option, the server behaves like the real program.
type Server struct {
	// Classes is the response of GET /object_info, by class.
	Classes map[string]json.RawMessage
	// Image and Video make the saved files from the workflow's seed.
	Image, Video func(seed int64) []byte
	// Hold, if not nil, pauses each run at its second node until the channel is closed.
	Hold chan struct{}
	// Break, if not nil, is called before each request is handled, and reports whether it has sent a response.
	Break func(w http.ResponseWriter, r *http.Request) bool
	// Preview, if not nil, is sent as the preview of each node that runs.
	Preview []byte

	mu             sync.Mutex
	uploads, saved map[string][]byte
	running        *job
	history        map[string]any
	sockets        map[string]*websocket.Conn
	runs           sync.WaitGroup
	calls          []string
	number         int
	turn           sync.Mutex
	pending        []*job
}

type job struct {
	id, client string
	number     int
	graph      map[string]node
	raw        json.RawMessage
	interrupt  chan struct{}
	cut        bool
}

type node struct {
	Class  string         `json:"class_type"`
	Inputs map[string]any `json:"inputs"`
}

func (s *Server) Calls() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

func (s *Server) Restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.history, s.uploads, s.pending = nil, nil, nil
	if s.running != nil {
		s.running.stop()
		s.running = nil
	}
	for _, socket := range s.sockets {
		_ = socket.CloseNow()
	}
}

func (s *Server) Wait() { s.runs.Wait() }

func (j *job) stop() {
	if !j.cut {
		j.cut = true
		close(j.interrupt)
	}
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.calls = append(s.calls, r.Method+" "+r.URL.Path)
	s.mu.Unlock()
	if s.Break != nil && s.Break(w, r) {
		return
	}
	class, isClass := strings.CutPrefix(r.URL.Path, "/object_info/")
	run, isRun := strings.CutPrefix(r.URL.Path, "/history/")
	switch call := r.Method + " " + r.URL.Path; {
	case call == "GET /ws":
		s.serveSocket(w, r)
	case call == "GET /prompt":
		s.answer(w, s.info())
	case call == "POST /prompt":
		s.takePrompt(w, r)
	case call == "POST /upload/image":
		s.takeUpload(w, r)
	case call == "GET /queue":
		s.answer(w, s.queue())
	case call == "POST /queue", call == "POST /history", call == "POST /interrupt":
		s.control(w, r)
	case call == "GET /view":
		s.view(w, r)
	case isClass:
		reported := map[string]json.RawMessage{}
		if info, known := s.Classes[class]; known {
			reported[class] = info
		}
		s.answer(w, reported)
	case isRun:
		s.mu.Lock()
		reported := map[string]any{}
		if record, known := s.history[run]; known {
			reported[run] = record
		}
		s.mu.Unlock()
		s.answer(w, reported)
	default:
		http.NotFound(w, r)
	}
}

func (s *Server) answer(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_ = json.NewEncoder(w).Encode(value) // this fails if the caller has disconnected
}

// Peek returns a request's body and leaves it readable.
func Peek(r *http.Request) []byte {
	body, _ := io.ReadAll(r.Body) // the next reader sees a truncated body too
	r.Body = io.NopCloser(bytes.NewReader(body))
	return body
}
