package client

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
)

type Message struct {
	// Role is "system", "user" or "assistant".
	Role    string `json:"role"`
	Content string `json:"content"`
}

// See docs/contract/gateway.md.
type Chat struct {
	Model    string    `json:"model"`
	Messages []Message `json:"messages"`
	// MaxTokens limits the reply; 0 means no limit. A nil Temperature means the model's default.
	MaxTokens   int      `json:"max_tokens,omitempty"`
	Temperature *float64 `json:"temperature,omitempty"`
}

type ChatUsage struct {
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
	TotalTokens      int `json:"total_tokens"`
}

func (c *Client) Complete(ctx context.Context, chat Chat) (json.RawMessage, error) {
	encoded, err := jsonBody(chat)
	if err != nil {
		return nil, err
	}
	request := c.inference(http.MethodPost, "/v1/chat/completions", encoded)
	request.silence = longSilence
	return c.fetch(ctx, request)
}

type streamedChat struct {
	Chat
	Stream  bool `json:"stream"`
	Options struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
}

// Stream passes each piece of the reply to the callback `said`. It returns the token counts, or zeros if unknown.
func (c *Client) Stream(ctx context.Context, chat Chat, said func(text string) error) (ChatUsage, error) {
	wanted := streamedChat{Chat: chat, Stream: true}
	wanted.Options.IncludeUsage = true
	encoded, err := jsonBody(wanted)
	if err != nil {
		return ChatUsage{}, err
	}
	request := c.inference(http.MethodPost, "/v1/chat/completions", encoded)
	response, err := c.send(ctx, request)
	if err != nil {
		return ChatUsage{}, err
	}
	defer response.Body.Close()
	var usage ChatUsage
	for event, err := range readEvents(response.Body) {
		if err != nil {
			return usage, connectionError(ctx, request.url, err)
		}
		if event.data == "[DONE]" {
			return usage, nil
		}
		var chunk struct {
			Choices []struct {
				Delta struct {
					Content string `json:"content"`
				} `json:"delta"`
			} `json:"choices"`
			Usage *ChatUsage `json:"usage"`
			Error *struct {
				Message string  `json:"message"`
				Type    string  `json:"type"`
				Code    *string `json:"code"`
			} `json:"error"`
		}
		if err := decode(json.RawMessage(event.data), &chunk); err != nil {
			return usage, err
		}
		if chunk.Error != nil {
			return usage, brokenOff(response, chunk.Error.Message, chunk.Error.Type, chunk.Error.Code)
		}
		if chunk.Usage != nil {
			usage = *chunk.Usage
		}
		for _, choice := range chunk.Choices {
			if choice.Delta.Content == "" {
				continue
			}
			if err := said(choice.Delta.Content); err != nil {
				return usage, err
			}
		}
	}
	return usage, connectionError(ctx, request.url, io.ErrUnexpectedEOF)
}

// brokenOff returns the error for a stream that failed after it started.
func brokenOff(response *http.Response, message, kind string, code *string) error {
	refusal := &Error{Status: http.StatusBadGateway, Message: message, Type: kind,
		RequestID: response.Header.Get("x-request-id")}
	if code != nil {
		refusal.Code = *code
	}
	return refusal
}
