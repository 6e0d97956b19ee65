package demomodel

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// request has the fields of chat and of text completions.
type request struct {
	Model         string `json:"model"`
	Stream        bool   `json:"stream"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	MaxTokens           *int  `json:"max_tokens"`
	MaxCompletionTokens *int  `json:"max_completion_tokens"`
	Stop                stops `json:"stop"`
	N                   *int  `json:"n"`
	Seed                int64 `json:"seed"`

	Messages       messages        `json:"messages"`
	Tools          []tool          `json:"tools"`
	ToolChoice     json.RawMessage `json:"tool_choice"`
	ResponseFormat struct {
		Type       string `json:"type"`
		JSONSchema struct {
			Schema json.RawMessage `json:"schema"`
		} `json:"json_schema"`
	} `json:"response_format"`

	Prompt inputs `json:"prompt"`
	// Echo puts the prompt before the answer. ReturnTokenIDs adds the ids of the tokens, as
	// vLLM does.
	Echo           bool `json:"echo"`
	ReturnTokenIDs bool `json:"return_token_ids"`
}

// messages are those of a conversation, as they were sent.
type messages []json.RawMessage

// last returns the role and the text of the last message. Content that is not text is empty.
func (m messages) last() (role, text string) {
	var last struct {
		Role    string  `json:"role"`
		Content content `json:"content"`
	}
	_ = json.Unmarshal(m[len(m)-1], &last) // the gateway has checked it
	return last.Role, string(last.Content)
}

// content is a text: a string, null, an object with a text, or parts of which some have one.
type content string

// UnmarshalJSON reads every form.
func (c *content) UnmarshalJSON(text []byte) error {
	if json.Unmarshal(text, (*string)(c)) == nil {
		return nil
	}
	type part struct {
		Text string `json:"text"`
	}
	parts := []part{{}}
	if json.Unmarshal(text, &parts[0]) != nil {
		if err := json.Unmarshal(text, &parts); err != nil {
			return err
		}
	}
	for _, part := range parts {
		*c += content(part.Text)
	}
	return nil
}

// stops are stop sequences, sent as a string or an array.
type stops []string

// UnmarshalJSON reads both forms.
func (s *stops) UnmarshalJSON(text []byte) error {
	var one string
	if json.Unmarshal(text, &one) == nil {
		*s = stops{one}
		return nil
	}
	return json.Unmarshal(text, (*[]string)(s))
}

type tool struct {
	Function struct {
		Name       string          `json:"name"`
		Parameters json.RawMessage `json:"parameters"`
	} `json:"function"`
}

func (s *Server) chat(w http.ResponseWriter, body []byte) error {
	var q request
	if err := decode(body, &q); err != nil {
		return err
	}
	if len(q.Messages) == 0 {
		return refuse("messages", "A message is required.")
	}
	if q.MaxCompletionTokens != nil {
		q.MaxTokens = q.MaxCompletionTokens
	}
	var prompt []int
	for _, m := range q.Messages {
		prompt = append(prompt, s.config.Tokenizer.Encode(string(m))...)
	}
	return s.answer(w, &q, reply{promptIDs: prompt})
}

// completions answers each prompt as chat answers a message.
func (s *Server) completions(w http.ResponseWriter, body []byte) error {
	var q request
	if err := decode(body, &q); err != nil {
		return err
	}
	texts, err := s.decoded(q.Prompt, "prompt")
	if err != nil {
		return err
	}
	var prompts []reply
	for _, text := range texts {
		prompts = append(prompts, reply{completion: true, prompt: text, promptIDs: s.config.Tokenizer.Encode(text)})
	}
	return s.answer(w, &q, prompts...)
}

// answer replies n times to each prompt.
func (s *Server) answer(w http.ResponseWriter, q *request, prompts ...reply) error {
	n := 1
	if q.N != nil {
		n = *q.N
	}
	if n < 1 || n > maxChoices {
		return refuse("n", fmt.Sprintf("n is 1 to %d.", maxChoices))
	}
	if len(prompts)*n > maxChoices {
		return refuse("prompt", fmt.Sprintf("A call has at most %d answers.", maxChoices))
	}
	var replies []reply
	read, written := 0, 0
	for _, r := range prompts {
		read += len(r.promptIDs)
		for i := range n {
			r := r
			if err := s.fill(&r, q, q.Seed+int64(i)); err != nil {
				return err
			}
			written += len(r.ids)
			replies = append(replies, r)
		}
	}
	s.send(w, q, replies, usageOf(read, written))
	return nil
}

// fill writes a reply. variant chooses its first sentence.
func (s *Server) fill(r *reply, q *request, variant int64) error {
	limit := min(MaxOutput, ContextLength-len(r.promptIDs))
	if limit < 1 {
		return &refusal{"messages", "context_length_exceeded", "The prompt is longer than the model's context."}
	}
	if q.MaxTokens != nil {
		if limit = min(limit, *q.MaxTokens); limit < 1 {
			return refuse("max_tokens", "max_tokens is 1 or more.")
		}
	}
	if r.completion {
		if err := s.generate(r, " "+say(variant, " You wrote "+quoted(r.prompt)+"."), limit, q.Stop); err != nil {
			return err
		}
		if q.Echo {
			r.pieces = append([]string{r.prompt}, r.pieces...)
		}
		return nil
	}
	called, err := q.called()
	if err != nil {
		return err
	}
	if called != nil {
		r.function, r.callID = called.Function.Name, "call_"+s.config.NewID()
		arguments, err := exampleOf(called.Function.Parameters)
		if err != nil {
			return refuse("tools", err.Error())
		}
		return s.generate(r, arguments, limit, nil)
	}
	text, err := q.content(variant)
	if err != nil {
		return err
	}
	return s.generate(r, text, limit, q.Stop)
}

// called returns the tool to call, or nil: the tool that tool_choice names, else the first
// one until a tool has answered.
func (q *request) called() (*tool, error) {
	var mode string
	var named tool
	if json.Unmarshal(q.ToolChoice, &mode) != nil && json.Unmarshal(q.ToolChoice, &named) == nil {
		for i := range q.Tools {
			if q.Tools[i].Function.Name == named.Function.Name {
				return &q.Tools[i], nil
			}
		}
		return nil, refuse("tool_choice", "tool_choice names a function that is not among the tools.")
	}
	role, _ := q.Messages.last()
	if len(q.Tools) == 0 || mode == "none" || mode != "required" && role == "tool" {
		return nil, nil
	}
	return &q.Tools[0], nil
}

// content returns the text of an answer to the last message.
func (q *request) content(variant int64) (string, error) {
	role, last := q.Messages.last()
	switch q.ResponseFormat.Type {
	case "json_schema":
		text, err := exampleOf(q.ResponseFormat.JSONSchema.Schema)
		if err != nil {
			return "", refuse("response_format", err.Error())
		}
		return text, nil
	case "json_object":
		text, err := json.Marshal(object{"answer": say(variant, ""), "last_message": last})
		return string(text), err
	}
	if role == "tool" {
		return say(variant, " The tool answered "+quoted(last)+"."), nil
	}
	return say(variant, " You wrote "+quoted(last)+"."), nil
}

// quoted returns the beginning of a text on one line, in quotation marks.
func quoted(text string) string {
	const shown = 200
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > shown {
		text = string(runes[:shown]) + "…"
	}
	return "“" + text + "”"
}

// say composes an answer around a sentence about the request.
func say(variant int64, about string) string {
	openings := []string{
		"This is Cutroom's demonstration model.", "You have reached Cutroom's demonstration model.",
		"Cutroom's demonstration model answers.", "Hello from Cutroom's demonstration model.",
	}
	n := int64(len(openings))
	return openings[(variant%n+n)%n] +
		" It is no language model and understands nothing: it makes this answer from your request alone." + about +
		" To talk to a language model, add a model server to the catalog."
}
