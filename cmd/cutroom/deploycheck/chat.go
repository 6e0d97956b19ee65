package deploycheck

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// textModel returns the model that completions are asked of: the first that is listed.
func (v *visit) textModel(ctx context.Context) (string, error) {
	if v.text != "" {
		return v.text, nil
	}
	var list struct{ Data []struct{ ID string } }
	if err := v.ask(ctx, request{path: "/v1/models", gateway: true, key: v.own.key}, &list); err != nil {
		return "", err
	}
	if len(list.Data) == 0 {
		return "", errors.New("the gateway lists no model")
	}
	v.text = list.Data[0].ID
	return v.text, nil
}

// chatOf returns the request of a chat.
func (v *visit) chatOf(model, prompt string, tokens int, stream bool) (request, error) {
	body, err := json.Marshal(map[string]any{"model": model, "max_tokens": tokens, "stream": stream,
		"messages": []map[string]string{{"role": "user", "content": prompt}}})
	return request{method: http.MethodPost, path: "/v1/chat/completions", gateway: true, key: v.own.key, body: body,
		kind: jsonType}, err
}

// checkChat asks for a short completion, in one answer and as a stream.
func checkChat(ctx context.Context, v *visit) (string, error) {
	model, err := v.textModel(ctx)
	if err != nil {
		return "", err
	}
	asked, err := v.chatOf(model, "Say hello.", 8, false)
	if err != nil {
		return "", err
	}
	got, err := v.call(ctx, asked)
	if err != nil {
		return "", err
	}
	if got.status != http.StatusOK {
		return "", got.unexpected("a chat with "+model, http.StatusOK)
	}
	v.own.chats++
	var completion struct {
		Choices []struct{ Message struct{ Content *string } }
		Usage   struct {
			Total int `json:"total_tokens"`
		}
	}
	if err := json.Unmarshal(got.body, &completion); err != nil || len(completion.Choices) != 1 || completion.Usage.Total < 1 {
		return "", fmt.Errorf("a chat with %s is no completion: %s", model, got.detail())
	}
	if got.header.Get("x-tokens-used") == "" {
		return "", fmt.Errorf("a chat with %s has no x-tokens-used", model)
	}
	streamed, err := v.stream(ctx, model, "Say hello.", 8)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s: %d tokens, and a stream of %d chunks", model, completion.Usage.Total, streamed.chunks), nil
}

// streamed is what a stream brought.
type streamed struct {
	chunks int
	// lasted is the time from the first chunk to the end, gap the longest silence.
	lasted, gap time.Duration
}

// stream asks for a completion as a stream, and reads it to its end.
func (v *visit) stream(ctx context.Context, model, prompt string, tokens int) (streamed, error) {
	asked, err := v.chatOf(model, prompt, tokens, true)
	if err != nil {
		return streamed{}, err
	}
	response, err := v.open(ctx, asked)
	if err != nil {
		return streamed{}, err
	}
	defer response.Body.Close()
	if kind := response.Header.Get("Content-Type"); response.StatusCode != http.StatusOK ||
		!strings.HasPrefix(kind, "text/event-stream") {
		return streamed{}, fmt.Errorf("a stream of %s: %d %s (request %s)", model, response.StatusCode, kind,
			answer{header: response.Header}.requestID())
	}
	v.own.chats++
	return v.readStream(response, model)
}

// readStream reads events until the one that says that it was the last.
func (v *visit) readStream(response *http.Response, model string) (streamed, error) {
	var s streamed
	began, last := v.Now(), v.Now()
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		now := v.Now()
		s.gap, last = max(s.gap, now.Sub(last)), now
		data, isData := strings.CutPrefix(lines.Text(), "data: ")
		switch {
		case !isData:
		case data == "[DONE]":
			s.lasted = now.Sub(began)
			return s, nil
		case strings.HasPrefix(data, `{"error"`):
			return s, fmt.Errorf("a stream of %s broke after %s: %.300s", model, round(now.Sub(began)), data)
		default:
			s.chunks++
		}
	}
	return s, fmt.Errorf("a stream of %s ended after %s and %d chunks without [DONE]: %w", model,
		round(v.Now().Sub(began)), s.chunks, errors.Join(lines.Err(), response.Body.Close()))
}

// longAnswer bounds the tokens that a long stream may cost.
const longAnswer = 4096

// checkStream keeps a stream open for minutes, by asking for a long answer until one has
// lasted that long. A model that is done sooner shows no more than its stream.
func checkStream(ctx context.Context, v *visit) (string, error) {
	model, err := v.textModel(ctx)
	if err != nil {
		return "", err
	}
	const prompt = "Write the numbers from one to two thousand in words, one after the other, and leave none out."
	s, err := v.stream(ctx, model, prompt, longAnswer)
	if err != nil {
		return "", err
	}
	detail := fmt.Sprintf("%s: %d chunks in %s, the longest silence %s", model, s.chunks, round(s.lasted), round(s.gap))
	if s.lasted < v.StreamTime {
		return "", skip("%s; no model here streams for %s, so that only its beginning was seen", detail, v.StreamTime)
	}
	return detail, nil
}

// checkUsage waits until the completions of this run are metered, and only those.
func checkUsage(ctx context.Context, v *visit) (string, error) {
	if v.own.chats == 0 {
		return "", errors.New("no completion was answered, so that there is nothing to meter")
	}
	for {
		var used struct {
			Data []struct {
				Requests int
				Prompt   int `json:"prompt_tokens"`
				Output   int `json:"completion_tokens"`
			}
		}
		if err := v.ask(ctx, request{path: "/v1/usage", gateway: true, key: v.own.key}, &used); err != nil {
			return "", err
		}
		requests, tokens := 0, 0
		for _, row := range used.Data {
			requests, tokens = requests+row.Requests, tokens+row.Prompt+row.Output
		}
		if requests > v.own.chats {
			return "", fmt.Errorf("%d completions are metered, %d were made", requests, v.own.chats)
		}
		if requests == v.own.chats && tokens > 0 {
			return fmt.Sprintf("%d completions, %d tokens", requests, tokens), nil
		}
		if err := v.wait(ctx); err != nil {
			return "", fmt.Errorf("%d completions are metered, %d were made: %w", requests, v.own.chats, err)
		}
	}
}
