// Package demomodel is a small model server for first runs and tests, with the interface of
// OpenAI: chat, text completions, embeddings, ranks, scores and the list of models.
//
// It has no language model. It makes each answer from the request and says so. The same
// request always gets the same answer. Arguments of tools and structured output match their
// JSON Schema, limits and stop sequences hold, token ids round-trip, and usage counts the
// tokenizer's tokens.
package demomodel

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"cutroom/shared/platform/boundedjson"
)

const (
	// Model is the name of the only model. Requests may use any name, and their
	// answers repeat it.
	Model = "cutroom-echo"
	// ContextLength is how many tokens prompt and completion may have together.
	ContextLength = 32768
	// MaxOutput is how many tokens one answer may have.
	MaxOutput = 4096
	// maxBody limits a request, in bytes.
	maxBody = 32 << 20
	// maxRequestValues is how many values and names the JSON of a request may have. A
	// context of token ids has 32,768. Each takes up to 200 bytes of memory.
	maxRequestValues = 40_000
	// maxChoices limits the answers of a call, over all of its prompts.
	maxChoices = 128
)

// Tokenizer splits text into tokens.
type Tokenizer interface {
	Count(text string) int
	Encode(text string) []int
	// Decode fails if an id is not in the vocabulary.
	Decode(ids ...int) (string, error)
}

// Config has the parts of a server. All fields are required.
type Config struct {
	Tokenizer Tokenizer
	Now       func() time.Time
	// NewID returns an id that no other answer has.
	NewID func() string
}

// Server answers completions and the other calls.
type Server struct {
	config Config
	mux    *http.ServeMux
}

// New returns a server.
func New(c Config) *Server {
	s := &Server{config: c, mux: http.NewServeMux()}
	s.mux.HandleFunc("GET /v1/models", s.models)
	s.mux.HandleFunc("POST /v1/chat/completions", s.handle(s.chat))
	s.mux.HandleFunc("POST /v1/completions", s.handle(s.completions))
	s.mux.HandleFunc("POST /v1/embeddings", s.handle(s.embeddings))
	s.mux.HandleFunc("POST /v1/rerank", s.handle(s.rerank))
	s.mux.HandleFunc("POST /v1/score", s.handle(s.score))
	s.mux.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
	return s
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

func (s *Server) models(w http.ResponseWriter, _ *http.Request) {
	model := object{"id": Model, "object": "model", "created": 0, "owned_by": "cutroom", "max_model_len": ContextLength}
	sendJSON(w, http.StatusOK, object{"object": "list", "data": []object{model}})
}

// handle reads the body for a route and sends the error that the route returns.
func (s *Server) handle(route func(w http.ResponseWriter, body []byte) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err == nil {
			err = route(w, body)
		}
		if err != nil {
			sendError(w, err)
		}
	}
}

// refusal is an error in the request.
type refusal struct{ param, code, message string }

func (e *refusal) Error() string { return e.message }

// refuse returns a refusal for a field.
func refuse(param, message string) error { return &refusal{param: param, message: message} }

func sendError(w http.ResponseWriter, err error) {
	status, kind := http.StatusInternalServerError, "api_error"
	param, code := any(nil), any(nil)
	if refused, ok := errors.AsType[*refusal](err); ok {
		status, kind = http.StatusBadRequest, "invalid_request_error"
		if refused.param != "" {
			param = refused.param
		}
		if refused.code != "" {
			code = refused.code
		}
	} else if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		status, kind = http.StatusRequestEntityTooLarge, "invalid_request_error"
	}
	sendJSON(w, status, object{"error": object{"message": err.Error(), "type": kind, "param": param, "code": code}})
}

func sendJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// The write fails if the caller has left, who then needs no answer.
	_ = json.NewEncoder(w).Encode(body)
}

// decode reads a request's JSON.
func decode(body []byte, into any) error {
	err := boundedjson.Unmarshal(body, maxRequestValues, into)
	if limit, ok := errors.AsType[*boundedjson.LimitError](err); ok {
		return refuse("", fmt.Sprintf("The demonstration model reads at most %d values in a request.", limit.Most))
	}
	if field, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return refuse(field.Field, "The field has the wrong type.")
	}
	if err != nil {
		return refuse("", "The body is not valid JSON: "+err.Error())
	}
	return nil
}
