package client

import (
	"context"
	"net/http"
)

// See docs/contract/gateway.md.
type Completion struct {
	Model  string `json:"model"`
	Prompt string `json:"prompt"`
	// MaxTokens limits the text; 0 means no limit. A nil Temperature means the model's default.
	MaxTokens   int      `json:"max_tokens,omitempty"`
	Temperature *float64 `json:"temperature,omitempty"`
}

func (c *Client) CompleteText(ctx context.Context, wanted Completion) (string, ChatUsage, error) {
	encoded, err := jsonBody(wanted)
	if err != nil {
		return "", ChatUsage{}, err
	}
	request := c.inference(http.MethodPost, "/v1/completions", encoded)
	request.silence = longSilence
	var answer struct {
		Choices []struct {
			Text string `json:"text"`
		} `json:"choices"`
		Usage ChatUsage `json:"usage"`
	}
	err = c.get(ctx, request, &answer)
	text := ""
	if len(answer.Choices) > 0 {
		text = answer.Choices[0].Text
	}
	return text, answer.Usage, err
}
