package demomodel

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// chatRequest is a request for a chat completion.
type chatRequest struct {
	common
	MaxCompletionTokens *int            `json:"max_completion_tokens"`
	Messages            []message       `json:"messages"`
	Tools               []tool          `json:"tools"`
	ToolChoice          json.RawMessage `json:"tool_choice"`
	ResponseFormat      struct {
		Type       string `json:"type"`
		JSONSchema struct {
			Schema json.RawMessage `json:"schema"`
		} `json:"json_schema"`
	} `json:"response_format"`
}

type message struct {
	Role      string     `json:"role"`
	Content   content    `json:"content"`
	ToolCalls []toolCall `json:"tool_calls"`
}

// content is the text of a message, which is sent as a string, as null, or as
// parts of which some are text.
type content string

// UnmarshalJSON reads every form.
func (c *content) UnmarshalJSON(text []byte) error {
	var one *string
	if json.Unmarshal(text, &one) == nil {
		if one != nil {
			*c = content(*one)
		}
		return nil
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if err := json.Unmarshal(text, &parts); err != nil {
		return err
	}
	for _, part := range parts {
		*c += content(part.Text)
	}
	return nil
}

type tool struct {
	Function struct {
		Name       string          `json:"name"`
		Parameters json.RawMessage `json:"parameters"`
	} `json:"function"`
}

type toolCall struct {
	Index    *int         `json:"index,omitempty"`
	ID       string       `json:"id,omitempty"`
	Type     string       `json:"type,omitempty"`
	Function functionCall `json:"function"`
}

type functionCall struct {
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments"`
}

// answerMessage is the message of a whole answer.
type answerMessage struct {
	Role      string     `json:"role"`
	Content   *string    `json:"content"`
	ToolCalls []toolCall `json:"tool_calls,omitempty"`
}

// messageDelta is what a chunk adds to a message.
type messageDelta struct {
	Role      string     `json:"role,omitempty"`
	Content   *string    `json:"content,omitempty"`
	ToolCalls []toolCall `json:"tool_calls,omitempty"`
}

type chatChoice struct {
	Index        int            `json:"index"`
	Message      *answerMessage `json:"message,omitempty"`
	Delta        *messageDelta  `json:"delta,omitempty"`
	Logprobs     any            `json:"logprobs"`
	FinishReason *string        `json:"finish_reason"`
}

type chatCompletion struct {
	ID      string       `json:"id"`
	Object  string       `json:"object"`
	Created int64        `json:"created"`
	Model   string       `json:"model"`
	Choices []chatChoice `json:"choices"`
	Usage   *usage       `json:"usage,omitempty"`
}

// reply is one choice before it is put into the shape of an answer or a stream.
type reply struct {
	generation
	// function is the function to call with the text as its arguments; if it is
	// empty, the text is the content.
	function, callID string
}

func (s *Server) chat(w http.ResponseWriter, r *http.Request, body []byte) error {
	var request chatRequest
	if err := decode(body, &request); err != nil {
		return err
	}
	n, err := request.choices()
	if err != nil {
		return err
	}
	if len(request.Messages) == 0 {
		return refuse("messages", "A message is required.")
	}
	promptTokens := s.config.Tokenizer.Count(request.prompt())
	asked := request.MaxTokens
	if request.MaxCompletionTokens != nil {
		asked = request.MaxCompletionTokens
	}
	limit, err := request.limit(asked, promptTokens)
	if err != nil {
		return err
	}
	called, err := request.called()
	if err != nil {
		return err
	}
	replies := make([]reply, n)
	sum := 0
	for i := range replies {
		if replies[i], err = s.reply(&request, called, int64(i), limit); err != nil {
			return err
		}
		sum += len(replies[i].ids)
	}
	answer := chatCompletion{
		ID: "chatcmpl-" + s.config.NewID(), Object: "chat.completion",
		Created: s.config.Now().Unix(), Model: request.Model,
		Choices: []chatChoice{},
	}
	used := usageOf(promptTokens, sum)
	if request.Stream {
		// The answer has begun: an error now means that the caller has left.
		_ = streamChat(newStream(w), answer, replies, request.StreamOptions.IncludeUsage, used)
		return nil
	}
	for i := range replies {
		answer.Choices = append(answer.Choices, replies[i].choice(i))
	}
	answer.Usage = used
	sendJSON(w, http.StatusOK, answer)
	return nil
}

// prompt is the conversation as one text, to count its tokens.
func (r *chatRequest) prompt() string {
	var text strings.Builder
	for _, m := range r.Messages {
		fmt.Fprintf(&text, "%s: %s\n", m.Role, m.Content)
		for _, call := range m.ToolCalls {
			fmt.Fprintf(&text, "%s(%s)\n", call.Function.Name, call.Function.Arguments)
		}
	}
	return text.String()
}

// called returns the tool to call, or nil: the one that tool_choice names, else
// the first one, until a tool has answered.
func (r *chatRequest) called() (*tool, error) {
	var mode string
	var named tool
	if len(r.ToolChoice) > 0 && json.Unmarshal(r.ToolChoice, &mode) != nil {
		if err := json.Unmarshal(r.ToolChoice, &named); err != nil {
			return nil, refuse("tool_choice", "tool_choice is auto, none, required, or names a function.")
		}
		for i := range r.Tools {
			if r.Tools[i].Function.Name == named.Function.Name {
				return &r.Tools[i], nil
			}
		}
		return nil, refuse("tool_choice", "tool_choice names a function that is not among the tools.")
	}
	answered := r.Messages[len(r.Messages)-1].Role == "tool"
	if len(r.Tools) == 0 || mode == "none" || mode != "required" && answered {
		return nil, nil
	}
	return &r.Tools[0], nil
}

// reply returns the choice with the number.
func (s *Server) reply(request *chatRequest, called *tool, number int64, limit int) (reply, error) {
	if called != nil {
		arguments, err := exampleOf(called.Function.Parameters)
		if err != nil {
			return reply{}, refuse("tools", err.Error())
		}
		g, err := s.generate(arguments, bounds{tokens: limit})
		return reply{g, called.Function.Name, "call_" + s.config.NewID()}, err
	}
	text, err := request.content(number)
	if err != nil {
		return reply{}, err
	}
	g, err := s.generate(text, bounds{limit, request.Stop, request.IgnoreEOS})
	return reply{generation: g}, err
}

// content returns the text of the answer.
func (r *chatRequest) content(number int64) (string, error) {
	last := r.Messages[len(r.Messages)-1]
	switch r.ResponseFormat.Type {
	case "json_schema":
		text, err := exampleOf(r.ResponseFormat.JSONSchema.Schema)
		if err != nil {
			return "", refuse("response_format", err.Error())
		}
		return text, nil
	case "json_object":
		text, err := json.Marshal(map[string]any{
			"answer": say(r.Seed+number, ""), "last_message": string(last.Content), "messages": len(r.Messages),
		})
		return string(text), err
	}
	about := " You wrote " + quoted(string(last.Content)) + "."
	if last.Role == "tool" {
		about = " The tool answered " + quoted(string(last.Content)) + "."
	}
	return say(r.Seed+number, about), nil
}

// choice returns the reply as a choice of a whole answer.
func (r *reply) choice(index int) chatChoice {
	text, finish := r.text(), r.finishReason()
	m := &answerMessage{Role: "assistant", Content: &text}
	if r.function != "" {
		m.Content = nil
		m.ToolCalls = []toolCall{{ID: r.callID, Type: "function", Function: functionCall{r.function, text}}}
	}
	return chatChoice{Index: index, Message: m, FinishReason: &finish}
}

func (r *reply) finishReason() string {
	if r.function != "" && r.finish == "stop" {
		return "tool_calls"
	}
	return r.finish
}

// deltas returns the reply as the deltas of a stream.
func (r *reply) deltas() []messageDelta {
	empty, index := "", 0
	if r.function == "" {
		deltas := []messageDelta{{Role: "assistant", Content: &empty}}
		for i := range r.pieces {
			deltas = append(deltas, messageDelta{Content: &r.pieces[i]})
		}
		return deltas
	}
	first := toolCall{&index, r.callID, "function", functionCall{Name: r.function}}
	deltas := []messageDelta{{Role: "assistant", ToolCalls: []toolCall{first}}}
	for _, piece := range r.pieces {
		next := toolCall{Index: &index, Function: functionCall{Arguments: piece}}
		deltas = append(deltas, messageDelta{ToolCalls: []toolCall{next}})
	}
	return deltas
}

func streamChat(events *stream, chunk chatCompletion, replies []reply, includeUsage bool, used *usage) error {
	chunk.Object = "chat.completion.chunk"
	none := chunk.Choices
	for i := range replies {
		for _, delta := range replies[i].deltas() {
			chunk.Choices = []chatChoice{{Index: i, Delta: &delta}}
			if err := events.send(chunk); err != nil {
				return err
			}
		}
		finish := replies[i].finishReason()
		chunk.Choices = []chatChoice{{Index: i, Delta: &messageDelta{}, FinishReason: &finish}}
		if err := events.send(chunk); err != nil {
			return err
		}
	}
	if includeUsage {
		chunk.Choices, chunk.Usage = none, used
		if err := events.send(chunk); err != nil {
			return err
		}
	}
	return events.end()
}
