package functions_test

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/sfn"

	"cutroom/shared/domain/idempotency"
	"cutroom/shared/domain/job"
	"cutroom/shared/testkit/lambdatest"
)

// keyed returns the event of a file with an Idempotency-Key.
func keyed(t *testing.T, name, key string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "events", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
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

// made is the answer to a request that creates something.
type made struct {
	status   int
	header   http.Header
	body     string
	replayed bool
}

func send(t *testing.T, f *lambdatest.Function, event []byte) made {
	t.Helper()
	answer, err := f.Request(t.Context(), event)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return made{answer.Status, answer.Header, string(body), answer.Header.Get("Idempotent-Replayed") == "true"}
}

// executions returns the ids of the jobs that were handed to the state machine.
func (w *world) executions(t *testing.T) (jobs []string) {
	t.Helper()
	list, err := sfn.NewFromConfig(w.cloud.Config()).ListExecutions(t.Context(),
		&sfn.ListExecutionsInput{StateMachineArn: &w.machine})
	if err != nil {
		t.Fatal(err)
	}
	for _, execution := range list.Executions {
		jobs = append(jobs, *execution.Name)
	}
	return jobs
}

func jobOf(t *testing.T, m made) string {
	t.Helper()
	var body struct {
		ID string `json:"job_id"`
	}
	if err := json.Unmarshal([]byte(m.body), &body); err != nil || m.status != http.StatusOK || body.ID == "" {
		t.Fatalf("%d %s", m.status, m.body)
	}
	return body.ID
}

// A request creates something once for its Idempotency-Key, with the permissions of
// the functions' roles.
func TestRepeatedRequestsCreateOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.work(t)
	t.Run("every function", w.testReplays)
	t.Run("many functions at once", w.testManyAtOnce)
	t.Run("after a function that died", w.testHalfAccepted)
}

// testReplays sends every kind of creating request twice, each to its function.
func (w *world) testReplays(t *testing.T) {
	for _, c := range []struct {
		function, event string
		// same means that the answers are the same to the byte.
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
				t.Errorf("answered\n%.300s\nand then\n%.300s", first.body, second.body)
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
					t.Errorf("answered\n%s\nand then\n%s", first.body, second.body)
				}
			}
		})
	}
}

// testManyAtOnce sends one request to many functions at once; one of them creates its
// job.
func (w *world) testManyAtOnce(t *testing.T) {
	const functions, requests = 4, 20
	var several []*lambdatest.Function
	for range functions {
		several = append(several, w.start(t, "jobs"))
	}
	before := w.executions(t)
	event := keyed(t, filepath.Join("jobs", "image"), "at once")
	answers := make([]made, requests)
	var all sync.WaitGroup
	for i := range answers {
		all.Go(func() {
			// Who has waited for the first one for seconds is told to come back.
			for answers[i].status == 0 || answers[i].status == http.StatusConflict {
				answers[i] = send(t, several[i%functions], event)
			}
		})
	}
	all.Wait()
	replayed := 0
	for _, a := range answers {
		if a.status != http.StatusOK || a.body != answers[0].body {
			t.Errorf("%d %s, and %s", a.status, a.body, answers[0].body)
		}
		if a.replayed {
			replayed++
		}
	}
	id := jobOf(t, answers[0])
	if now := w.executions(t); replayed != requests-1 || len(now) != len(before)+1 || !slices.Contains(now, id) {
		t.Errorf("%d of %d answers were replayed, and %v were handed over after %v", replayed, requests, now, before)
	}
}

// testHalfAccepted repeats the request of a function that died after it had recorded
// its job and before it handed it over.
func (w *world) testHalfAccepted(t *testing.T) {
	f := w.start(t, "jobs")
	whole := jobOf(t, send(t, f, keyed(t, filepath.Join("jobs", "image"), "whole")))
	ctx, now := t.Context(), time.Now().UTC().Truncate(time.Millisecond)
	known, err := w.claims.Claim(ctx,
		idempotency.Claim{Account: "acme", Key: "key/whole", Fingerprint: "?", Resource: "?"}, "", now)
	if err != nil {
		t.Fatal(err)
	}
	half, err := w.jobs.Get(ctx, whole)
	if err != nil {
		t.Fatal(err)
	}
	half.Status, half.ID, half.CreatedAt, half.Deadline = job.Pending, "job_01K0000000000000000000HALF", now,
		now.Add(sampleAge)
	if err := w.jobs.Accept(ctx, half, 0); err != nil {
		t.Fatal(err)
	}
	dead := idempotency.Claim{Account: "acme", Key: "key/died", Fingerprint: known.Fingerprint, Resource: half.ID}
	if _, err := w.claims.Claim(ctx, dead, "", now.Add(-idempotency.Abandoned)); err != nil {
		t.Fatal(err)
	}
	if slices.Contains(w.executions(t), half.ID) {
		t.Fatal("the job was handed over, which proves nothing")
	}
	again := send(t, f, keyed(t, filepath.Join("jobs", "image"), "died"))
	if jobOf(t, again) != half.ID || !again.replayed || !slices.Contains(w.executions(t), half.ID) {
		t.Errorf("answered %s (replayed: %t), and %v were handed over", again.body, again.replayed, w.executions(t))
	}
}
