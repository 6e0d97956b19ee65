package functions_test

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"cutroom/shared/testkit/lambdatest"
)

// keyed reads an event from a file and adds an Idempotency-Key to it.
func keyed(t *testing.T, name, key string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "events", name+".json"))
	must(t, err)
	var event events.APIGatewayProxyRequest
	if err := json.Unmarshal(text, &event); err != nil {
		t.Fatal(err)
	}
	event.Headers["Idempotency-Key"], event.MultiValueHeaders["Idempotency-Key"] = key, []string{key}
	if text, err = json.Marshal(event); err != nil {
		t.Fatal(err)
	}
	return text
}

type made struct {
	status   int
	header   http.Header
	body     string
	replayed bool
}

func send(t *testing.T, f *lambdatest.Function, event []byte) made {
	t.Helper()
	answer, err := f.Request(t.Context(), event)
	must(t, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	must(t, err)
	return made{answer.Status, answer.Header, string(body), answer.Header.Get("Idempotent-Replayed") == "true"}
}

// The functions have only their roles' permissions.
func TestRepeatedRequestsCreateOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.work(t)
	t.Run("every function", w.testReplays)
}

func (w *world) testReplays(t *testing.T) {
	for _, c := range []struct {
		function, event string
		// same means that all responses must be identical.
		same bool
	}{
		{"jobs", "image", true}, {"images", "edit", true}, {"files", "upload", true}, {"files", "announce", false}, {"tokens", "scoped", true},
	} {
		t.Run(c.function+"/"+c.event, func(t *testing.T) {
			f := w.start(t, c.function)
			event := keyed(t, filepath.Join(c.function, c.event), c.event)
			first, second := send(t, f, event), send(t, f, event)
			if first.status != http.StatusOK || first.replayed || second.status != http.StatusOK || !second.replayed {
				t.Fatalf("%d %.300s (replayed: %t), then %d %.300s (replayed: %t)",
					first.status, first.body, first.replayed, second.status, second.body, second.replayed)
			}
			if c.same && first.body != second.body {
				t.Errorf("the first response is\n%.300s\nand the second\n%.300s", first.body, second.body)
			}
			for _, field := range []string{"X-Job-Id", "ETag", "Content-Type"} {
				if first.header.Get(field) != second.header.Get(field) {
					t.Errorf("%s is %q, and then %q", field, first.header.Get(field), second.header.Get(field))
				}
			}
			if !c.same {
				var one, two struct{ ID string }
				if json.Unmarshal([]byte(first.body), &one) != nil || json.Unmarshal([]byte(second.body), &two) != nil ||
					one.ID == "" || one.ID != two.ID {
					t.Errorf("the first response is\n%s\nand the second\n%s", first.body, second.body)
				}
			}
		})
	}
}
