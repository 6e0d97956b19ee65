package worker_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"cutroom/shared/domain/job"
	"cutroom/shared/engine"
	"cutroom/shared/engine/enhance"
	"cutroom/shared/service/worker"
	"cutroom/shared/testkit/await"
)

func (s *fixture) submitPrompt(prompt string, enhancer bool) string {
	return s.submit("clip", 0, func(j *job.Job) {
		j.Request.Prompt = prompt
		j.Request.Options["enhance_prompt"] = enhancer
	})
}

func TestPromptsAreEnhanced(t *testing.T) {
	replies := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			json.NewEncoder(w).Encode(
				map[string]any{"choices": []any{map[string]any{"message": map[string]any{"content": text}}}},
			)
		}
	}
	const expanded = "A loose watercolor of a bay at dusk, in warm light."
	for _, c := range []struct {
		name   string
		model  http.HandlerFunc // may be nil
		prompt string
		asked  bool
		want   string
	}{
		{"expanded", replies(expanded), "watercolor", true, expanded},
		{"not asked for", replies(expanded), "watercolor", false, "watercolor"},
		{"nothing to expand", replies(expanded), "", true, ""},
		{"no model is set", nil, "watercolor", true, "watercolor"},
		{
			"the model fails", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, "watercolor", true,
			"watercolor",
		},
		{"the model returns nothing", replies(""), "watercolor", true, "watercolor"},
		{"the model returns too much", replies(strings.Repeat("x", 4001)), "watercolor", true, "watercolor"},
		{
			"the model returns nonsense", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html>") },
			"watercolor", true, "watercolor",
		},
		{
			"the model hangs up", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "watercolor", true,
			"watercolor",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newFixture(t)
			prompts := make(chan string, 1)
			s.start(func(ctx context.Context, spec engine.Spec, progress func(engine.Progress)) error {
				prompts <- spec.Prompt
				return succeed(ctx, spec, progress)
			}, func(config *worker.Config) {
				if c.model == nil {
					return
				}
				server := httptest.NewServer(c.model)
				t.Cleanup(server.Close)
				enhancer, err := enhance.NewEnhancer(server.URL, "writer", "")
				if err != nil {
					t.Fatal(err)
				}
				config.Enhancer = enhancer
			})
			j := s.awaitEnd(s.submitPrompt(c.prompt, c.asked))
			used := await.Receive(t, "prompts", prompts)
			shown := c.want
			if c.want == c.prompt {
				shown = ""
			}
			if j.Status != job.Completed || used != c.want || j.Result.EnhancedPrompt != shown || j.Request.Prompt != c.prompt {
				t.Errorf("the engine received %q; the job is %s, %+v, asked %q", used, j.Status, j.Result, j.Request.Prompt)
			}
		})
	}
}

// patient is an enhancer that waits until its context ends.
type patient struct{ asked chan struct{} }

func (p patient) Enhance(ctx context.Context, _ string, _ int) (string, error) {
	close(p.asked)
	<-ctx.Done()
	return "", ctx.Err()
}

func TestRunWaitingForPromptCanBeCancelled(t *testing.T) {
	s := newFixture(t)
	enhancer := patient{make(chan struct{})}
	stop := s.start(func(ctx context.Context, _ engine.Spec, _ func(engine.Progress)) error {
		<-ctx.Done()
		return ctx.Err()
	}, func(config *worker.Config) {
		config.Enhancer, config.CheckEvery = enhancer, 20*time.Millisecond
	})
	id := s.submitPrompt("watercolor", true)
	await.Receive(t, "enhancer.asked", enhancer.asked)
	if err := s.service.Cancel(
		t.Context(), id, job.Failure{Code: job.Cancelled, Message: "No longer wanted."},
	); err != nil {
		t.Fatal(err)
	}
	s.wantFailure(id, job.Cancelled, "No longer wanted.")
	left := func() int {
		entries, err := os.ReadDir(s.scratch)
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	await.Until(t, "the run's folder is removed", func() bool { return left() == 0 })
	s.wantClean(stop)
}
