package demomodel

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"
)

type request struct {
	Model         string `json:"model"`
	Stream        bool   `json:"stream"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	MaxTokens           int    `json:"max_tokens"`
	MaxCompletionTokens int    `json:"max_completion_tokens"`
	Stop                inputs `json:"stop"`
	N                   int    `json:"n"`

	Messages       []json.RawMessage `json:"messages"`
	Tools          []tool            `json:"tools"`
	ToolChoice     json.RawMessage   `json:"tool_choice"`
	ResponseFormat struct {
		Type       string `json:"type"`
		JSONSchema struct {
			Schema json.RawMessage `json:"schema"`
		} `json:"json_schema"`
	} `json:"response_format"`

	Prompt inputs `json:"prompt"`
	// Echo repeats the prompt before the reply. ReturnTokenIDs adds token ids, as vLLM does.
	Echo           bool `json:"echo"`
	ReturnTokenIDs bool `json:"return_token_ids"`
}

// content unmarshals a string from a JSON string, null, or a list of parts.
type content string

func (c *content) UnmarshalJSON(text []byte) error {
	if json.Unmarshal(text, (*string)(c)) == nil {
		return nil
	}
	var parts []struct {
		Text string `json:"text"`
	}
	err := json.Unmarshal(text, &parts)
	var all strings.Builder
	for _, part := range parts {
		all.WriteString(part.Text)
	}
	*c = content(all.String())
	return err
}

type tool struct {
	Function struct {
		Name       string          `json:"name"`
		Parameters json.RawMessage `json:"parameters"`
	} `json:"function"`
}

var errTooLong = &refusal{"messages", "context_length_exceeded", "The prompt is longer than the model's context."}

func (s *Server) chat(w http.ResponseWriter, q *request) (object, error) {
	if len(q.Messages) == 0 {
		return nil, reject("messages", "A message is required.")
	}
	size := 0
	for _, m := range q.Messages {
		if size += len(m); size > maxText {
			return nil, errTooLong
		}
	}
	var last struct {
		Role    string  `json:"role"`
		Content content `json:"content"`
	}
	_ = json.Unmarshal(q.Messages[len(q.Messages)-1], &last) // already validated by the gateway
	r := reply{tool: last.Role == "tool", asked: string(last.Content)}
	for _, m := range q.Messages {
		r.promptIDs = append(r.promptIDs, s.config.Tokenizer.Encode(string(m))...)
	}
	return s.answer(w, q, r)
}

// completions replies to each prompt the way chat replies to a message.
func (s *Server) completions(w http.ResponseWriter, q *request) (object, error) {
	texts, err := s.decoded(q.Prompt, "prompt")
	if err != nil {
		return nil, err
	}
	var prompts []reply
	for _, text := range texts {
		prompts = append(prompts, reply{completion: true, asked: text, promptIDs: s.config.Tokenizer.Encode(text)})
	}
	return s.answer(w, q, prompts...)
}

func (s *Server) answer(w http.ResponseWriter, q *request, prompts ...reply) (object, error) {
	n := cmp.Or(q.N, 1)
	if n < 1 || n > maxChoices/len(prompts) {
		return nil, reject("n", fmt.Sprintf("n must be from 1 to %d, across all prompts.", maxChoices))
	}
	var replies []reply
	read, written := 0, 0
	for _, r := range prompts {
		if err := s.fill(&r, q); err != nil {
			return nil, err
		}
		read += len(r.promptIDs)
		for range n {
			written += len(r.ids)
			replies = append(replies, r)
		}
	}
	s.send(w, q, replies, object{
		"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written,
		"prompt_tokens_details": object{"cached_tokens": 0}, "completion_tokens_details": object{"reasoning_tokens": 0},
	})
	return nil, nil
}

func (s *Server) fill(r *reply, q *request) error {
	// The gateway has checked that max_tokens is positive.
	limit := min(cmp.Or(q.MaxCompletionTokens, q.MaxTokens, MaxOutput), MaxOutput, ContextLength-len(r.promptIDs))
	if limit < 1 {
		return errTooLong
	}
	called, err := q.called(r)
	if err != nil {
		return err
	}
	text, field, stop := say(" You wrote "+quoted(r.asked)+"."), "response_format", q.Stop.texts
	switch format := q.ResponseFormat; {
	case r.completion:
		text = " " + text
	case called != nil:
		r.function, r.callID, stop = called.Function.Name, "call_"+s.config.NewID(), nil
		field = "tools"
		text, err = exampleOf(called.Function.Parameters)
	case format.Type == "json_schema":
		text, err = exampleOf(format.JSONSchema.Schema)
	case format.Type == "json_object":
		encoded, _ := json.Marshal(object{"answer": say(""), "last_message": r.asked}) // marshaling strings cannot fail
		text = string(encoded)
	case r.tool:
		text = say(" The tool answered " + quoted(r.asked) + ".")
	}
	if err != nil {
		return reject(field, err.Error())
	}
	if q.Echo {
		r.pieces = []string{r.asked}
	}
	return s.generate(r, text, limit, stop)
}

// called returns the tool to call: the tool named in tool_choice, or else the first tool. It returns nil if no call
// is allowed, or if none is required and a tool has already returned a result.
func (q *request) called(r *reply) (*tool, error) {
	var mode string
	var named tool
	if json.Unmarshal(q.ToolChoice, &mode) != nil && json.Unmarshal(q.ToolChoice, &named) == nil {
		for _, t := range q.Tools {
			if t.Function.Name == named.Function.Name {
				return &t, nil
			}
		}
		return nil, reject("tool_choice", "tool_choice names a function that is not among the tools.")
	}
	if len(q.Tools) == 0 || mode == "none" || mode != "required" && r.tool {
		return nil, nil
	}
	return &q.Tools[0], nil
}

// quoted returns the start of a text as a single line in quotation marks.
func quoted(text string) string {
	const shown = 200
	if text = strings.Join(strings.Fields(text), " "); len(text) > shown {
		text = strings.ToValidUTF8(text[:shown], "") + "…"
	}
	return "“" + text + "”"
}

// say returns a reply that contains a sentence about the request.
func say(about string) string {
	return "This is Cutroom's demonstration model. It is not a language model and understands nothing. It composes this reply " +
		"from your request only." + about + " To talk to a language model, add a model server to the catalog."
}

type reply struct {
	completion, tool bool
	asked            string
	promptIDs        []int
	// function is the name of the function to call with the text as its arguments. It is empty if the text is the
	// reply's content.
	function, callID string
	// pieces are streamed in order. Each piece contains one token, or several tokens that encode one character.
	pieces []string
	ids    []int
	// finish is the finish reason: "stop", "tool_calls" or "length".
	finish string
}

// generate appends text to the reply, up to a stop sequence or the token limit.
func (s *Server) generate(r *reply, text string, tokens int, stop []string) error {
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
		// Never send an incomplete character, even if the token limit splits one.
		if held += piece; utf8.ValidString(held) {
			r.pieces = append(r.pieces, held)
			held = ""
		}
	}
	return nil
}

type object = map[string]any

func (s *Server) send(w http.ResponseWriter, q *request, replies []reply, used object) {
	id, kind := "chatcmpl-", "chat.completion"
	if replies[0].completion {
		id, kind = "cmpl-", "text_completion"
	} else if q.Stream {
		kind += ".chunk"
	}
	answer := object{"id": id + s.config.NewID(), "object": kind, "created": s.config.Now().Unix(), "model": q.Model}
	if q.Stream {
		_ = stream(w, answer, replies, q.StreamOptions.IncludeUsage, used)
		return
	}
	answer["usage"] = used
	sendList(w, answer, "choices", len(replies), func(i int) object {
		r := &replies[i]
		c := r.choice(i, "message", strings.Join(r.pieces, ""), true, r.finish)
		if r.completion && q.ReturnTokenIDs {
			c["prompt_token_ids"], c["token_ids"] = r.promptIDs, r.ids
		}
		return c
	})
}

// choice returns text as a choice of the reply. For a chat, the text is in a message or a delta.
func (r *reply) choice(index int, part, text string, first bool, finish any) object {
	c := object{"index": index, "logprobs": nil, "finish_reason": finish}
	if r.completion {
		c["text"] = text
		return c
	}
	message := object{"content": text}
	if r.function != "" {
		function := object{"arguments": text}
		call := object{"index": 0, "function": function}
		if first {
			call["id"], call["type"], function["name"] = r.callID, "function", r.function
		}
		message = object{"content": nil, "tool_calls": []object{call}}
	}
	if first {
		message["role"] = "assistant"
	}
	c[part] = message
	return c
}

// stream sends the replies as Server-Sent Events. It fails if the caller has disconnected.
func stream(w http.ResponseWriter, chunk object, replies []reply, includeUsage bool, used object) error {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	send := func(choices ...object) error {
		chunk["choices"] = append([]object{}, choices...)
		text, err := json.Marshal(chunk)
		if err == nil {
			_, err = fmt.Fprintf(w, "data: %s\n\n", text)
		}
		return errors.Join(err, http.NewResponseController(w).Flush())
	}
	for i := range replies {
		r := &replies[i]
		for j, text := range append([]string{""}, r.pieces...) {
			if err := send(r.choice(i, "delta", text, j == 0, nil)); err != nil {
				return err
			}
		}
		if err := send(r.choice(i, "delta", "", false, r.finish)); err != nil {
			return err
		}
	}
	if includeUsage {
		chunk["usage"] = used
		if err := send(); err != nil {
			return err
		}
	}
	_, err := io.WriteString(w, "data: [DONE]\n\n")
	return err
}
