// Package demomodel is a small model server for first runs and tests, with OpenAI's interface.
//
// The same request always gets the same reply, composed from the request. Tool arguments and structured output match
// their JSON Schema. Limits and stop sequences apply. The usage contains the tokenizer's token counts.
package demomodel

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"cutroom/shared/platform/boundedjson"
	"cutroom/shared/service/gateway/tokenizer"
)

const (
	// Model is the name of the only model. Requests may use any other name too.
	Model         = "cutroom-echo"
	ContextLength = 32768 // tokens of prompt and completion together
	MaxOutput     = 4096  // tokens of a reply
	maxBody       = 4 << 20
	// maxText is the maximum size of the text in a request, in bytes. Tokenizing takes a second per megabyte.
	maxText = 8 * ContextLength
	// maxRequestValues is the maximum number of values and names in a request. Each takes 200 bytes of memory.
	maxRequestValues = 40_000
	// maxChoices is the maximum number of replies in a call, across all prompts.
	maxChoices = 128
)

type Config struct {
	Tokenizer *tokenizer.Tokenizer
	Now       func() time.Time
	NewID     func() string
}

type Server struct {
	config Config
	mux    *http.ServeMux
}

func New(c Config) *Server {
	s := &Server{config: c, mux: http.NewServeMux()}
	s.mux.HandleFunc("GET /v1/models", s.models)
	s.mux.HandleFunc("POST /v1/chat/completions", handle(s.chat))
	s.mux.HandleFunc("POST /v1/completions", handle(s.completions))
	s.mux.HandleFunc("POST /v1/embeddings", handle(s.embeddings))
	s.mux.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
	return s
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

func (s *Server) models(w http.ResponseWriter, _ *http.Request) {
	model := object{"id": Model, "object": "model", "created": 0, "owned_by": "cutroom", "max_model_len": ContextLength}
	sendJSON(w, http.StatusOK, object{"object": "list", "data": []object{model}})
}

// handle decodes the body and sends the route's response or error. A route that has already sent
// its response returns nil.
func handle[T any](route func(w http.ResponseWriter, q *T) (object, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var q T
		var answer object
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err == nil {
			err = decode(body, &q)
		}
		if err == nil {
			answer, err = route(w, &q)
		}
		if err != nil {
			sendError(w, err)
		} else if answer != nil {
			sendJSON(w, http.StatusOK, answer)
		}
	}
}

type refusal struct{ param, code, message string }

func (e *refusal) Error() string         { return e.message }
func reject(param, message string) error { return &refusal{param: param, message: message} }

func sendError(w http.ResponseWriter, err error) {
	status, detail := http.StatusInternalServerError, object{
		"message": err.Error(), "type": "api_error", "param": nil, "code": nil,
	}
	if refused, ok := errors.AsType[*refusal](err); ok {
		status, detail["type"] = http.StatusBadRequest, "invalid_request_error"
		if refused.param != "" {
			detail["param"] = refused.param
		}
		if refused.code != "" {
			detail["code"] = refused.code
		}
	} else if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		status = http.StatusRequestEntityTooLarge
	}
	sendJSON(w, status, object{"error": detail})
}

func sendJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// The write fails only if the caller has disconnected.
	_ = json.NewEncoder(w).Encode(body)
}

// sendList sends an object whose field contains n items. It writes one item at a time, because
// together they can be a thousand times larger than the request.
func sendList(w http.ResponseWriter, answer object, field string, n int, item func(i int) object) {
	text, _ := json.Marshal(answer) // such objects always encode
	w.Header().Set("Content-Type", "application/json")
	_, err := fmt.Fprintf(w, "%s,%q:", text[:len(text)-1], field)
	for i := 0; i < n && err == nil; i++ {
		text, _ = json.Marshal(item(i))
		_, err = fmt.Fprintf(w, "%c%s", "[,"[min(i, 1)], text)
	}
	// Writes fail only if the caller has disconnected.
	_, _ = io.WriteString(w, "]}\n")
}

func decode(body []byte, into any) error {
	err := boundedjson.Unmarshal(body, maxRequestValues, into)
	if limit, ok := errors.AsType[*boundedjson.LimitError](err); ok {
		return reject("", fmt.Sprintf("The demonstration model reads at most %d values in a request.", limit.Most))
	}
	if field, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return reject(field.Field, "The field has the wrong type.")
	}
	if err != nil {
		return reject("", "The body is not valid JSON: "+err.Error())
	}
	return nil
}
