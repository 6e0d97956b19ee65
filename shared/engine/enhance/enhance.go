// Package enhance expands prompts with a chat model of the gateway or of a compatible server.
package enhance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"cutroom/shared/platform/boundedjson"
)

const (
	// enhanceTime is short, because a job waits for the call.
	enhanceTime = 8 * time.Second
	// In bytes.
	maxAnswer = 1 << 20
	maxValues = 10_000
	maxTokens = 300
)

const instruction = `You improve prompts for a video and image editing model.
Rewrite the user's prompt as one vivid, concrete paragraph of at most 80 words. Keep every wish and add no new subject.
Answer with the prompt alone, in the language of the user's prompt.`

type Enhancer struct {
	client          *http.Client
	url, model, key string
}

// FromSettings takes the values of the CUTROOM_ENHANCE_… settings. It returns nil if all are empty.
func FromSettings(base, model, key string) (*Enhancer, error) {
	if base == "" {
		if model != "" || key != "" {
			return nil, errors.New("CUTROOM_ENHANCE_URL: not set, but CUTROOM_ENHANCE_MODEL or CUTROOM_ENHANCE_KEY is set")
		}
		return nil, nil
	}
	if model == "" {
		return nil, errors.New("CUTROOM_ENHANCE_MODEL: not set, but CUTROOM_ENHANCE_URL is set")
	}
	enhancer, err := NewEnhancer(base, model, key)
	if err != nil {
		return nil, fmt.Errorf("CUTROOM_ENHANCE_URL: %w", err)
	}
	return enhancer, nil
}

// The base URL may end with "/v1". key may be empty.
func NewEnhancer(base, model, key string) (*Enhancer, error) {
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("%q is not an http or https URL", base)
	}
	return &Enhancer{
		client: &http.Client{
			Timeout: enhanceTime,
			Transport: &http.Transport{
				Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, IdleConnTimeout: time.Minute,
				MaxResponseHeaderBytes: 64 << 10, DisableCompression: true,
			},
			// A redirect would send the key to another server.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		url:   strings.TrimSuffix(strings.TrimSuffix(base, "/"), "/v1") + "/v1/chat/completions",
		model: model, key: key,
	}, nil
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// Enhance returns the expanded prompt, which is not empty and has at most maxLength code points.
func (e *Enhancer) Enhance(ctx context.Context, prompt string, maxLength int) (string, error) {
	body, err := json.Marshal(map[string]any{
		"model":      e.model,
		"max_tokens": maxTokens,
		"messages":   []message{{"system", instruction}, {"user", prompt}},
	})
	if err != nil {
		return "", fmt.Errorf("enhance: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, bytes.NewReader(body))
	if err != nil {
		return "", fmt.Errorf("enhance: %w", err)
	}
	request.Header.Set("Content-Type", "application/json")
	if e.key != "" {
		request.Header.Set("Authorization", "Bearer "+e.key)
	}
	response, err := e.client.Do(request)
	if err != nil {
		return "", fmt.Errorf("enhance: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("enhance: the model server returned status %d", response.StatusCode)
	}
	var answer struct {
		Choices []struct {
			Message      message `json:"message"`
			FinishReason string  `json:"finish_reason"`
		} `json:"choices"`
	}
	if err := boundedjson.Read(response.Body, maxAnswer, maxValues, &answer); err != nil {
		return "", fmt.Errorf("enhance: read the response: %w", err)
	}
	if len(answer.Choices) == 0 {
		return "", fmt.Errorf("enhance: the model returned no text")
	}
	if answer.Choices[0].FinishReason == "length" {
		return "", fmt.Errorf("enhance: the model's reply was truncated")
	}
	text := strings.Join(strings.Fields(answer.Choices[0].Message.Content), " ")
	if text == "" || utf8.RuneCountInString(text) > maxLength {
		return "", fmt.Errorf("enhance: the model did not return a prompt of 1 to %d characters", maxLength)
	}
	return text, nil
}
