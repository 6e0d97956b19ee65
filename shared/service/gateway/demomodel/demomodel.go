// Package demomodel is a small model server with the OpenAI-compatible
// interface of vLLM, SGLang and llama.cpp: chat, text completions, embeddings,
// ranks, scores and the list of models. It is for first runs and tests.
//
// There is no language model in it. It composes its answers from the request
// and says so in them; the same request always gets the same answer. The forms
// are kept: the arguments of tools and structured output match their JSON
// Schema, limits and stop sequences hold, token ids round-trip, and usage is
// exact by the tokenizer's vocabulary.
package demomodel

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

const (
	// Model is the name of the only model. Requests may use any name, and their
	// answers repeat it.
	Model = "cutroom-echo"
	// ContextLength is how many tokens prompt and completion may have together.
	ContextLength = 32768
	// MaxOutput is how many tokens one answer may have.
	MaxOutput = 4096
	// maxBody bounds a request, in bytes.
	maxBody = 32 << 20
	// maxChoices bounds the answers of a call, over all of its prompts.
	maxChoices = 128
)

// Tokenizer splits text into tokens.
type Tokenizer interface {
	Count(text string) int
	Encode(text string) []int
	// Decode fails if an id is not in the vocabulary.
	Decode(ids ...int) (string, error)
}

// Config is what a server is made of. All fields are required.
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
	sendJSON(w, http.StatusOK, map[string]any{
		"object": "list",
		"data": []any{map[string]any{
			"id": Model, "object": "model", "created": 0, "owned_by": "cutroom", "max_model_len": ContextLength,
		}},
	})
}

// handle reads the body for a route, and answers with the error that the route
// returns before its answer has begun.
func (s *Server) handle(route func(w http.ResponseWriter, r *http.Request, body []byte) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err == nil {
			err = route(w, r, body)
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
	status, kind := http.StatusBadRequest, "invalid_request_error"
	var (
		refused *refusal
		large   *http.MaxBytesError
		param   any
		code    any
	)
	switch {
	case errors.As(err, &refused):
		if refused.param != "" {
			param = refused.param
		}
		if refused.code != "" {
			code = refused.code
		}
	case errors.As(err, &large):
		status = http.StatusRequestEntityTooLarge
	default:
		status, kind = http.StatusInternalServerError, "api_error"
	}
	sendJSON(w, status, map[string]any{
		"error": map[string]any{"message": err.Error(), "type": kind, "param": param, "code": code},
	})
}

func sendJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// The write fails if the caller has left, who then needs no answer.
	_ = json.NewEncoder(w).Encode(body)
}

// decode reads a request's JSON.
func decode(body []byte, into any) error {
	err := json.Unmarshal(body, into)
	var field *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &field):
		// The fields that both routes have are in an embedded struct.
		return refuse(strings.TrimPrefix(field.Field, "common."), "The field has the wrong type.")
	}
	return refuse("", "The body is no valid JSON: "+err.Error())
}

// common are the fields that both routes have.
type common struct {
	Model         string `json:"model"`
	Stream        bool   `json:"stream"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	MaxTokens *int  `json:"max_tokens"`
	Stop      stops `json:"stop"`
	N         *int  `json:"n"`
	Seed      int64 `json:"seed"`
	IgnoreEOS bool  `json:"ignore_eos"`
}

// choices returns how many answers are asked for.
func (c *common) choices() (int, error) {
	if c.N == nil {
		return 1, nil
	}
	if *c.N < 1 || *c.N > maxChoices {
		return 0, refuse("n", fmt.Sprintf("n is 1 to %d.", maxChoices))
	}
	return *c.N, nil
}

// limit returns how many tokens each answer to a prompt may have.
func (c *common) limit(asked *int, prompt int) (int, error) {
	left := ContextLength - prompt
	if left < 1 {
		return 0, &refusal{
			param: "messages", code: "context_length_exceeded",
			message: "The prompt is longer than the model's context.",
		}
	}
	if asked == nil {
		return min(MaxOutput, left), nil
	}
	if *asked < 1 {
		return 0, refuse("max_tokens", "max_tokens is 1 or more.")
	}
	return min(*asked, MaxOutput, left), nil
}

// stops are stop sequences, sent as a string or an array.
type stops []string

// UnmarshalJSON reads both forms.
func (s *stops) UnmarshalJSON(text []byte) error {
	var one *string
	if json.Unmarshal(text, &one) == nil {
		*s = nil
		if one != nil {
			*s = stops{*one}
		}
		return nil
	}
	return json.Unmarshal(text, (*[]string)(s))
}

// before returns the text up to the first stop sequence, and whether there was
// one.
func (s stops) before(text string) (string, bool) {
	end := -1
	for _, stop := range s {
		if at := strings.Index(text, stop); stop != "" && at >= 0 && (end < 0 || at < end) {
			end = at
		}
	}
	if end < 0 {
		return text, false
	}
	return text[:end], true
}

// usage is what a call used.
type usage struct {
	PromptTokens            int                `json:"prompt_tokens"`
	CompletionTokens        int                `json:"completion_tokens"`
	TotalTokens             int                `json:"total_tokens"`
	PromptTokensDetails     *promptDetails     `json:"prompt_tokens_details,omitempty"`
	CompletionTokensDetails *completionDetails `json:"completion_tokens_details,omitempty"`
}

type promptDetails struct {
	CachedTokens int `json:"cached_tokens"`
}

type completionDetails struct {
	ReasoningTokens int `json:"reasoning_tokens"`
}

func usageOf(prompt, completion int) *usage {
	return &usage{
		PromptTokens: prompt, CompletionTokens: completion, TotalTokens: prompt + completion,
		PromptTokensDetails: &promptDetails{}, CompletionTokensDetails: &completionDetails{},
	}
}
