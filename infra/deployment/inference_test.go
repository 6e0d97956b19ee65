package deployment

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
)

// testInference completes a chat with the demonstration model of the catalog,
// buffered and streamed, and finds both in the account's usage.
func testInference(t *testing.T, d *deployed) {
	url, key := d.url(t, "InferenceUrl"), d.key(t, "inference")
	call := func(ctx context.Context, key, method, path, body string) (*http.Response, []byte) {
		t.Helper()
		request, err := http.NewRequestWithContext(ctx, method, url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+key)
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Accept", anything)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		content, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response, content
	}
	refused, body := call(bounded(t), "ck_unknown0", http.MethodGet, "/v1/models", "")
	if refused.StatusCode != http.StatusUnauthorized || !bytes.Contains(body, []byte(`"invalid_api_key"`)) {
		t.Errorf("an unknown key: %d %s", refused.StatusCode, body)
	}
	listed, body := call(bounded(t), key, http.MethodGet, "/v1/models", "")
	var models struct{ Data []struct{ ID string } }
	if listed.StatusCode != http.StatusOK || json.Unmarshal(body, &models) != nil || len(models.Data) == 0 {
		t.Fatalf("the models: %d %s", listed.StatusCode, body)
	}
	model := models.Data[0].ID

	chat := `{"model":"` + model + `","messages":[{"role":"user","content":"Hello"}],"max_tokens":5}`
	answered, body := call(bounded(t), key, http.MethodPost, "/v1/chat/completions", chat)
	if answered.StatusCode != http.StatusOK || answered.Header.Get("X-Tokens-Used") == "" ||
		!bytes.Contains(body, []byte(`"chat.completion"`)) {
		t.Errorf("a chat: %d %v %s", answered.StatusCode, answered.Header, body)
	}
	streamed, body := call(bounded(t), key, http.MethodPost, "/v1/chat/completions",
		strings.Replace(chat, "{", `{"stream":true,`, 1))
	if streamed.StatusCode != http.StatusOK ||
		!strings.HasPrefix(streamed.Header.Get("Content-Type"), "text/event-stream") ||
		!bytes.HasSuffix(bytes.TrimSpace(body), []byte("data: [DONE]")) {
		t.Errorf("a stream: %d %v %s", streamed.StatusCode, streamed.Header, body)
	}
	until(t, "both are in the usage", func(ctx context.Context) (bool, error) {
		_, body := call(ctx, key, http.MethodGet, "/v1/usage", "")
		var usage struct {
			Data []struct {
				Model    string
				Requests int
			}
		}
		err := json.Unmarshal(body, &usage)
		calls := 0
		for _, day := range usage.Data { // midnight may have passed
			if calls += day.Requests; day.Model != model {
				t.Errorf("there is usage of %q", day.Model)
			}
		}
		return calls == 2, err
	})
}
