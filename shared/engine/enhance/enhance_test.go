package enhance_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"cutroom/shared/engine/enhance"
	"cutroom/shared/testkit/alloctest"
	"cutroom/shared/testkit/await"
)

func TestEnhanceCleansPrompt(t *testing.T) {
	answer := func(content string) string {
		body, _ := json.Marshal(
			map[string]any{"choices": []any{map[string]any{"message": map[string]any{"role": "assistant", "content": content}}}},
		)
		return string(body)
	}
	for _, c := range []struct {
		name   string
		status int
		body   string
		want   string // empty if an error is expected
	}{
		{"a prompt", 200, answer("  A loose watercolor of a bay at dusk.\n"), "A loose watercolor of a bay at dusk."},
		{"a prompt in paragraphs", 200, answer("A bay\n\n at\tdusk."), "A bay at dusk."},
		{"cut off", 200, `{"choices":[{"message":{"content":"A loose wat"},"finish_reason":"length"}]}`, ""},
		{"nothing", 200, answer(" \n"), ""},
		{"much too long", 200, answer(strings.Repeat("é", 101)), ""},
		{"of the maximum length", 200, answer(strings.Repeat("é", 100)), strings.Repeat("é", 100)},
		{"no choice", 200, `{"choices":[]}`, ""},
		{"no JSON", 200, `<html>`, ""},
		{"an error", 503, answer("x"), ""},
		{"a refusal", 401, `{"error":{"message":"no"}}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var sent struct {
				Model     string
				MaxTokens int `json:"max_tokens"`
				Messages  []struct{ Role, Content string }
			}
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method != "POST" || r.URL.Path != "/v1/chat/completions" ||
					r.Header.Get("Authorization") != "Bearer ck_gateway" {
					t.Errorf("received %s %s with %q", r.Method, r.URL.Path, r.Header.Get("Authorization"))
				}
				if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
					t.Error(err)
				}
				w.WriteHeader(c.status)
				io.WriteString(w, c.body)
			}))
			defer server.Close()
			enhancer, err := enhance.NewEnhancer(server.URL+"/", "writer", "ck_gateway")
			if err != nil {
				t.Fatal(err)
			}
			got, err := enhancer.Enhance(t.Context(), "watercolor", 100)
			if got != c.want || (err == nil) != (c.want != "") {
				t.Errorf("got %q, %v; want %q", got, err, c.want)
			}
			if len(sent.Messages) != 2 || sent.Messages[1].Content != "watercolor" || sent.Model != "writer" ||
				sent.MaxTokens <= 0 {
				t.Errorf("the model received %+v", sent)
			}
		})
	}
}

func TestBaseURLMayEndWithVersion(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/models/v1/chat/completions" {
			t.Errorf("asked %s", r.URL.Path)
		}
		io.WriteString(w, `{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}]}`)
	}))
	defer server.Close()
	for _, base := range []string{"/models", "/models/", "/models/v1", "/models/v1/"} {
		enhancer, err := enhance.NewEnhancer(server.URL+base, "writer", "")
		if err != nil {
			t.Fatal(err)
		}
		if got, err := enhancer.Enhance(t.Context(), "watercolor", 100); got != "x" || err != nil {
			t.Errorf("%s: got %q, %v", base, got, err)
		}
	}
}

func TestLongHeaderIsRejected(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if encoding := r.Header.Get("Accept-Encoding"); encoding != "" {
			t.Errorf("the request accepts %s", encoding)
		}
		w.Header().Set("X-Padding", strings.Repeat("a", 128<<10))
		io.WriteString(w, `{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}]}`)
	}))
	defer server.Close()
	enhancer, err := enhance.NewEnhancer(server.URL, "writer", "")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := enhancer.Enhance(t.Context(), "watercolor", 100); err == nil {
		t.Errorf("a header of 128 KiB was accepted, with %q", got)
	}
}

func TestEnhanceEndsWithItsContext(t *testing.T) {
	asked, done := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(asked)
		<-done
	}))
	defer server.Close()
	defer close(done)
	enhancer, err := enhance.NewEnhancer(server.URL, "writer", "")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), await.Max)
	go func() {
		<-asked
		cancel()
	}()
	if got, err := enhancer.Enhance(ctx, "watercolor", 100); err == nil {
		t.Errorf("got %q from a model that never responded", got)
	}
}

func TestNewEnhancerRejectsInvalidURLs(t *testing.T) {
	for _, base := range []string{"", "localhost:8081", "ftp://models", "http://", fmt.Sprintf("http://%c", 0x7f)} {
		if _, err := enhance.NewEnhancer(base, "m", ""); err == nil {
			t.Errorf("%q was accepted", base)
		}
	}
}

func TestResponsesWithSmallElementsUseLittleMemory(t *testing.T) {
	answer := `{"choices":[{}` + strings.Repeat(",{}", 340<<10) + `]}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, answer) }))
	defer server.Close()
	enhancer, err := enhance.NewEnhancer(server.URL, "writer", "")
	if err != nil {
		t.Fatal(err)
	}
	alloctest.Check(t, len(answer), func() {
		if _, err := enhancer.Enhance(t.Context(), "a bay", 100); err == nil {
			t.Error("the response was accepted")
		}
	})
}
