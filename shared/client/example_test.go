package client_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"time"

	"cutroom/shared/client"
)

func newExampleClient() (c *client.Client, closeAll func()) {
	const completed = `{"job_id":"job_1","status":"completed","model":"gen-2.5","progress":1}`
	answers := map[string]string{
		"POST /v1/jobs/{model}":     `{"job_id":"job_1","status":"pending","model":"gen-2.5"}`,
		"GET /v1/jobs/job_1/events": "event: job\ndata: " + completed + "\n\n",
		"GET /v1/jobs":              `{"jobs":[` + completed + `],"next_cursor":null}`,
		"GET /v1/jobs/{id}/content": "the edited clip",
		"POST /v1/chat/completions": "data: {\"choices\":[{\"delta\":{\"content\":\"Hello\"}}]}\n\n" +
			"data: {\"choices\":[{\"delta\":{\"content\":\" there!\"}}]}\n\n" +
			"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":3,\"total_tokens\":8}}\n\n" +
			"data: [DONE]\n\n",
		"POST /v1/client/tokens": `{"apiKey":"ek_1","expiresAt":"2026-01-31T12:00:00Z"}`,
	}
	mux := http.NewServeMux()
	for pattern, answer := range answers {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/v1/jobs/job_1/events" {
				w.Header().Set("Content-Type", "text/event-stream")
			}
			_, _ = io.WriteString(w, answer)
		})
	}
	mux.HandleFunc("POST /v1/jobs/gen-9", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"detail":"Unknown model."}`)
	})
	server := httptest.NewServer(mux)
	c, err := client.New(client.Config{
		URL: server.URL, InferenceURL: server.URL, Key: "ck_example", UserAgent: "example/1", NewID: rand.Text,
		Backoff: time.Second,
	})
	if err != nil {
		log.Fatal(err)
	}
	return c, func() { c.Close(); server.Close() }
}

func ExampleNew() {
	c, err := client.New(client.Config{
		URL: "http://127.0.0.1:8080", InferenceURL: "http://127.0.0.1:8081", Key: os.Getenv("CUTROOM_API_KEY"),
		UserAgent: "example/1", NewID: rand.Text, Backoff: time.Second,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
}

// Edits are jobs: create one, wait until it has ended, and download the result.
func ExampleClient_CreateJob() {
	c, closeAll := newExampleClient()
	defer closeAll()
	ctx := context.Background()
	clip, err := client.File("../../testdata/clip.mp4")
	if err != nil {
		log.Fatal(err)
	}
	job, err := c.CreateJob(ctx, client.Edit{
		Model: "gen-latest", Data: &clip, Fields: map[string]string{"prompt": "a watercolor painting"},
	}, nil)
	if err != nil {
		log.Fatal(err)
	}
	job, err = c.AwaitJob(ctx, job.ID, func(job client.Job) { fmt.Printf("%s, %.0f %%\n", job.Status, 100*job.Progress) })
	if err != nil {
		log.Fatal(err)
	}
	if job.Status == client.Failed {
		log.Fatal(job.Error.Message)
	}
	folder, err := os.MkdirTemp("", "cutroom-example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	output := filepath.Join(folder, "edited.mp4")
	if err := c.Download(ctx, job.ID, output, nil); err != nil {
		log.Fatal(err)
	}
	content, err := os.ReadFile(output)
	fmt.Println(string(content), err)
	// Output:
	// completed, 100 %
	// the edited clip <nil>
}

// A rejected call returns an *Error with the status and the service's message.
func ExampleError() {
	c, closeAll := newExampleClient()
	defer closeAll()
	_, err := c.CreateJob(context.Background(), client.Edit{Model: "gen-9"}, nil)
	var refusal *client.Error
	if errors.As(err, &refusal) {
		fmt.Println(refusal.Status, refusal.Message)
	}
	// Output: 404 Unknown model.
}

func ExampleClient_Jobs() {
	c, closeAll := newExampleClient()
	defer closeAll()
	for job, err := range c.Jobs(context.Background(), client.JobFilter{Status: client.Completed}, 10) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(job.ID, job.Model)
	}
	// Output: job_1 gen-2.5
}

func ExampleClient_Stream() {
	c, closeAll := newExampleClient()
	defer closeAll()
	usage, err := c.Stream(context.Background(), client.Chat{
		Model: "cutroom-chat", Messages: []client.Message{{Role: "user", Content: "Hello!"}},
	}, func(text string) error {
		_, err := fmt.Print(text)
		return err
	})
	fmt.Printf("\n%d tokens, %v\n", usage.TotalTokens, err)
	// Output:
	// Hello there!
	// 8 tokens, <nil>
}

// A server creates a client token for a browser, which must not see the key.
func ExampleClient_CreateToken() {
	c, closeAll := newExampleClient()
	defer closeAll()
	token, err := c.CreateToken(context.Background(),
		client.TokenRequest{ExpiresIn: 60, AllowedModels: []string{"gen-2.5"}})
	fmt.Println(token.APIKey, token.ExpiresAt.Format(time.RFC3339), err)
	// Output: ek_1 2026-01-31T12:00:00Z <nil>
}
