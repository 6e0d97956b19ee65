package main_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"cutroom/shared/testkit/await"
	"cutroom/shared/testkit/servertest"
)

func TestChatModelExpandsPrompts(t *testing.T) {
	t.Parallel()
	ctx := steps(t)
	const expanded = "A loose watercolor of a bay at dusk."
	asked := make(chan string, 1)
	writer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Path + " " + r.Header.Get("Authorization")
		fmt.Fprintf(w, `{"choices":[{"message":{"role":"assistant","content":%q},"finish_reason":"stop"}]}`, expanded)
	}))
	defer writer.Close()
	client := start(t, t.TempDir(), "CUTROOM_ENHANCE_URL="+writer.URL, "CUTROOM_ENHANCE_MODEL=writer",
		"CUTROOM_ENHANCE_KEY=secret").Client()
	job, err := client.Submit(ctx, "gen-image-2", servertest.Form{
		servertest.File("data", "a.png", fixtures.picture), servertest.Text("prompt", "watercolor"),
	})
	if err != nil {
		t.Fatal(err)
	}
	if job, err = client.Await(bounded(t), job.ID, nil); err != nil || job.Status != "completed" {
		t.Fatalf("%+v, %v", job, err)
	}
	answer, err := client.Get(ctx, "/v1/jobs/"+job.ID)
	var record struct {
		EnhancedPrompt string `json:"enhanced_prompt"`
	}
	if err != nil || json.Unmarshal(answer.Body, &record) != nil || record.EnhancedPrompt != expanded {
		t.Errorf("the record is %s, %v", answer.Body, err)
	}
	select {
	case got := <-asked:
		if got != "/v1/chat/completions Bearer secret" {
			t.Errorf("the model got the request %q", got)
		}
	case <-time.After(await.Max):
		t.Error("the model got no request")
	}
}
