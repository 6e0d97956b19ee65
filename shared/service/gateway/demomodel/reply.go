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
	// finish is why the answer ended: "stop", "tool_calls" or "length".
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

// object is a JSON object of an answer.
type object = map[string]any

func usageOf(prompt, completion int) object {
	return object{
		"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion,
		"prompt_tokens_details": object{"cached_tokens": 0}, "completion_tokens_details": object{"reasoning_tokens": 0},
	}
}

// send sends the replies as one answer or as a stream.
func (s *Server) send(w http.ResponseWriter, q *request, replies []reply, used object) {
	id, kind := "chatcmpl-", "chat.completion"
	if replies[0].completion {
		id, kind = "cmpl-", "text_completion"
	} else if q.Stream {
		kind += ".chunk"
	}
	answer := object{"id": id + s.config.NewID(), "object": kind, "created": s.config.Now().Unix(), "model": q.Model}
	if q.Stream {
		// The answer has begun: an error now means that the caller has left.
		_ = stream(w, answer, replies, q.StreamOptions.IncludeUsage, used)
		return
	}
	var choices []object
	for i, r := range replies {
		c := r.piece(i, strings.Join(r.pieces, ""), true)
		if !r.completion {
			message, _ := c["delta"].(object)
			if r.function != "" {
				message["content"] = nil
			}
			c["message"] = message
			delete(c, "delta")
		} else if q.ReturnTokenIDs {
			c["prompt_token_ids"], c["token_ids"] = r.promptIDs, r.ids
		}
		c["finish_reason"] = r.finish
		choices = append(choices, c)
	}
	answer["choices"], answer["usage"] = choices, used
	sendJSON(w, http.StatusOK, answer)
}

// piece returns a text of the reply as a choice of a chunk.
func (r *reply) piece(index int, text string, first bool) object {
	c := object{"index": index, "logprobs": nil, "finish_reason": nil}
	if r.completion {
		c["text"] = text
		return c
	}
	delta := object{}
	if first {
		delta["role"] = "assistant"
	}
	if r.function == "" {
		delta["content"] = text
	} else {
		function := object{"arguments": text}
		call := object{"index": 0, "function": function}
		if first {
			call["id"], call["type"], function["name"] = r.callID, "function", r.function
		}
		delta["tool_calls"] = []object{call}
	}
	c["delta"] = delta
	return c
}

// stream sends the replies as Server-Sent Events. It fails if the caller has left.
func stream(w http.ResponseWriter, chunk object, replies []reply, includeUsage bool, used object) error {
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
	send := func(choices ...object) error {
		chunk["choices"] = append([]object{}, choices...)
		text, err := json.Marshal(chunk)
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
		if last["finish_reason"] = r.finish; !r.completion {
			last["delta"] = object{}
		}
		if err := send(last); err != nil {
			return err
		}
	}
	if includeUsage {
		chunk["usage"] = used
		if err := send(); err != nil {
			return err
		}
	}
	return write([]byte("[DONE]"))
}
