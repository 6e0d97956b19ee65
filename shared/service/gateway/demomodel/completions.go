package demomodel

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// completionRequest is a request for text completions.
type completionRequest struct {
	common
	Prompt prompts `json:"prompt"`
	// Echo puts the prompt before the answer.
	Echo bool `json:"echo"`
	// ReturnTokenIDs asks for the ids of the tokens besides their text, as in
	// vLLM.
	ReturnTokenIDs bool `json:"return_token_ids"`
}

// prompt is a text or token ids.
type prompt struct {
	text string
	ids  []int
}

// prompts are the four forms that a prompt may have.
type prompts []prompt

// UnmarshalJSON reads a string, strings, token ids, or several lists of them.
func (p *prompts) UnmarshalJSON(text []byte) error {
	var one string
	if json.Unmarshal(text, &one) == nil {
		*p = prompts{{text: one}}
		return nil
	}
	var several []string
	if json.Unmarshal(text, &several) == nil {
		for _, each := range several {
			*p = append(*p, prompt{text: each})
		}
		return nil
	}
	var ids []int
	if json.Unmarshal(text, &ids) == nil {
		*p = prompts{{ids: ids}}
		return nil
	}
	var lists [][]int
	if err := json.Unmarshal(text, &lists); err != nil {
		return err
	}
	for _, ids := range lists {
		*p = append(*p, prompt{ids: ids})
	}
	return nil
}

// completionChoice is one answer, or a part of it.
type completionChoice struct {
	Index          int     `json:"index"`
	Text           string  `json:"text"`
	Logprobs       any     `json:"logprobs"`
	FinishReason   *string `json:"finish_reason"`
	PromptTokenIDs []int   `json:"prompt_token_ids,omitempty"`
	TokenIDs       []int   `json:"token_ids,omitempty"`
}

// completion is an answer, or a chunk of one.
type completion struct {
	ID      string             `json:"id"`
	Object  string             `json:"object"`
	Created int64              `json:"created"`
	Model   string             `json:"model"`
	Choices []completionChoice `json:"choices"`
	Usage   *usage             `json:"usage,omitempty"`
}

func (s *Server) completions(w http.ResponseWriter, r *http.Request, body []byte) error {
	var request completionRequest
	if err := decode(body, &request); err != nil {
		return err
	}
	n, err := request.choices()
	if err != nil {
		return err
	}
	if len(request.Prompt) == 0 {
		return refuse("prompt", "A prompt is required.")
	}
	if len(request.Prompt)*n > maxChoices {
		return refuse("prompt", fmt.Sprintf("A call has at most %d answers.", maxChoices))
	}
	done, err := s.generateAll(&request, n)
	if err != nil {
		return err
	}
	answer := completion{
		ID: "cmpl-" + s.config.NewID(), Object: "text_completion", Created: s.config.Now().Unix(), Model: request.Model,
		Choices: []completionChoice{},
	}
	if !request.Stream {
		for i, g := range done.generations {
			choice := completionChoice{Index: i, Text: g.text(), FinishReason: &g.finish}
			if request.ReturnTokenIDs {
				choice.PromptTokenIDs, choice.TokenIDs = done.promptIDs[i], g.ids
			}
			answer.Choices = append(answer.Choices, choice)
		}
		answer.Usage = done.usage
		sendJSON(w, http.StatusOK, answer)
		return nil
	}
	// The answer has begun: an error now means that the caller has left.
	_ = streamCompletions(newStream(w), answer, done, request.StreamOptions.IncludeUsage)
	return nil
}

// completed is what was generated for a request: each generation with the token
// ids of its prompt, and the usage of all.
type completed struct {
	generations []generation
	promptIDs   [][]int
	usage       *usage
}

// generateAll generates n answers to every prompt.
func (s *Server) generateAll(request *completionRequest, n int) (completed, error) {
	var done completed
	promptSum, answerSum := 0, 0
	for _, p := range request.Prompt {
		if p.ids == nil {
			p.ids = s.config.Tokenizer.Encode(p.text)
		} else {
			var err error
			if p.text, err = s.config.Tokenizer.Decode(p.ids...); err != nil {
				return completed{}, refuse("prompt", err.Error())
			}
		}
		limit, err := request.limit(request.MaxTokens, len(p.ids))
		if err != nil {
			return completed{}, err
		}
		promptSum += len(p.ids)
		for i := range n {
			text := " " + say(request.Seed+int64(i), " Your prompt is "+quoted(p.text)+".")
			g, err := s.generate(text, bounds{limit, request.Stop, request.IgnoreEOS})
			if err != nil {
				return completed{}, err
			}
			answerSum += len(g.ids)
			if request.Echo {
				g.pieces = append([]string{p.text}, g.pieces...)
			}
			done.generations, done.promptIDs = append(done.generations, g), append(done.promptIDs, p.ids)
		}
	}
	done.usage = usageOf(promptSum, answerSum)
	return done, nil
}

func streamCompletions(events *stream, chunk completion, done completed, includeUsage bool) error {
	none := chunk.Choices
	for i, g := range done.generations {
		for _, piece := range g.pieces {
			chunk.Choices = []completionChoice{{Index: i, Text: piece}}
			if err := events.send(chunk); err != nil {
				return err
			}
		}
		chunk.Choices = []completionChoice{{Index: i, FinishReason: &g.finish}}
		if err := events.send(chunk); err != nil {
			return err
		}
	}
	if includeUsage {
		chunk.Choices, chunk.Usage = none, done.usage
		if err := events.send(chunk); err != nil {
			return err
		}
	}
	return events.end()
}
