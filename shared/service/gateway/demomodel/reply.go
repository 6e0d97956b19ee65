package demomodel

import (
	"encoding/json"
	"net/http"
	"strings"
	"unicode/utf8"
)

// reply is one answer, token by token.
type reply struct {
	// completion says that this answers the prompt of a text completion, not a chat.
	completion bool
	prompt     string
	promptIDs  []int
	// function is the function to call with the text as its arguments. If it is empty, the
	// text is the content.
	function, callID string
	// pieces are streamed one after another: the text of each token, or of several tokens if
	// a character spans them.
	pieces []string
	ids    []int
	// finish is why the answer ended: "stop" or "length".
	finish string
}

// generate adds a text to the reply, up to a number of tokens or a stop sequence.
func (s *Server) generate(r *reply, text string, tokens int, stop stops) error {
	for _, end := range stop {
		if end != "" {
			text, _, _ = strings.Cut(text, end)
		}
	}
	r.ids, r.finish = s.config.Tokenizer.Encode(text), "stop"
	if len(r.ids) > tokens {
		r.ids, r.finish = r.ids[:tokens], "length"
	} else if r.function != "" {
		r.finish = "tool_calls"
	}
	held := ""
	for _, id := range r.ids {
		piece, err := s.config.Tokenizer.Decode(id)
		if err != nil {
			return err
		}
		// Incomplete characters are never sent, also if the limit cuts one.
		if held += piece; utf8.ValidString(held) {
			r.pieces = append(r.pieces, held)
			held = ""
		}
	}
	return nil
}

// answer is a whole answer, or a chunk of one.
type answer struct {
	ID      string         `json:"id"`
	Object  string         `json:"object"`
	Created int64          `json:"created"`
	Model   string         `json:"model"`
	Choices []choice       `json:"choices"`
	Usage   map[string]any `json:"usage,omitempty"`
}

type choice struct {
	Index          int     `json:"index"`
	Text           *string `json:"text,omitempty"`
	Message        *said   `json:"message,omitempty"`
	Delta          *said   `json:"delta,omitempty"`
	Logprobs       any     `json:"logprobs"`
	FinishReason   *string `json:"finish_reason"`
	PromptTokenIDs []int   `json:"prompt_token_ids,omitempty"`
	TokenIDs       []int   `json:"token_ids,omitempty"`
}

// said is a message of the model, or what a chunk adds to it. Content is a string or null.
type said struct {
	Role      string     `json:"role,omitempty"`
	Content   any        `json:"content,omitempty"`
	ToolCalls []toolCall `json:"tool_calls,omitempty"`
}

type toolCall struct {
	Index    *int   `json:"index,omitempty"`
	ID       string `json:"id,omitempty"`
	Type     string `json:"type,omitempty"`
	Function struct {
		Name      string `json:"name,omitempty"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

func usageOf(prompt, completion int) map[string]any {
	return map[string]any{
		"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion,
		"prompt_tokens_details":     map[string]int{"cached_tokens": 0},
		"completion_tokens_details": map[string]int{"reasoning_tokens": 0},
	}
}

// send sends the replies as one answer or as a stream.
func (s *Server) send(w http.ResponseWriter, q *request, replies []reply, used map[string]any) error {
	a := answer{ID: "chatcmpl-" + s.config.NewID(), Object: "chat.completion", Created: s.config.Now().Unix(), Model: q.Model}
	if replies[0].completion {
		a.ID, a.Object = "cmpl-"+s.config.NewID(), "text_completion"
	} else if q.Stream {
		a.Object += ".chunk"
	}
	if q.Stream {
		// The answer has begun: an error now means that the caller has left.
		_ = a.stream(w, replies, q.StreamOptions.IncludeUsage, used)
		return nil
	}
	for i, r := range replies {
		a.Choices = append(a.Choices, r.choice(i, q.ReturnTokenIDs))
	}
	a.Usage = used
	sendJSON(w, http.StatusOK, a)
	return nil
}

// choice returns the reply as a choice of a whole answer.
func (r *reply) choice(index int, ids bool) choice {
	c := r.piece(index, strings.Join(r.pieces, ""), true)
	if c.Message, c.Delta = c.Delta, nil; r.function != "" {
		c.Message.Content, c.Message.ToolCalls[0].Index = json.RawMessage("null"), nil
	}
	if ids {
		c.PromptTokenIDs, c.TokenIDs = r.promptIDs, r.ids
	}
	c.FinishReason = &r.finish
	return c
}

// piece returns a text of the reply as a choice of a chunk.
func (r *reply) piece(index int, text string, first bool) choice {
	if r.completion {
		return choice{Index: index, Text: &text}
	}
	delta := &said{}
	if first {
		delta.Role = "assistant"
	}
	if r.function == "" {
		delta.Content = text
		return choice{Index: index, Delta: delta}
	}
	call := toolCall{Index: new(int)}
	if first {
		call.ID, call.Type, call.Function.Name = r.callID, "function", r.function
	}
	call.Function.Arguments = text
	delta.ToolCalls = []toolCall{call}
	return choice{Index: index, Delta: delta}
}

// stream sends the replies as Server-Sent Events. It fails if the caller has left.
func (a answer) stream(w http.ResponseWriter, replies []reply, includeUsage bool, used map[string]any) error {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	w.WriteHeader(http.StatusOK)
	controller := http.NewResponseController(w)
	write := func(data []byte) error {
		if _, err := w.Write(append(append([]byte("data: "), data...), "\n\n"...)); err != nil {
			return err
		}
		return controller.Flush()
	}
	send := func(choices ...choice) error {
		a.Choices = append([]choice{}, choices...)
		text, err := json.Marshal(a)
		if err != nil {
			return err
		}
		return write(text)
	}
	for i := range replies {
		r := &replies[i]
		for j, text := range append([]string{""}, r.pieces...) {
			if err := send(r.piece(i, text, j == 0)); err != nil {
				return err
			}
		}
		last := r.piece(i, "", false)
		if last.FinishReason = &r.finish; last.Delta != nil {
			last.Delta = &said{}
		}
		if err := send(last); err != nil {
			return err
		}
	}
	if includeUsage {
		a.Usage = used
		if err := send(); err != nil {
			return err
		}
	}
	return write([]byte("[DONE]"))
}
