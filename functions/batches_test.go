package functions_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"cutroom/shared/domain/audit"
	"cutroom/shared/domain/batch"
	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/file"
	"cutroom/shared/domain/usage"
	"cutroom/shared/testkit/await"
	"cutroom/shared/testkit/awstest"
	"cutroom/shared/testkit/lambdatest"
)

const chatRoute = "/v1/chat/completions"

const strangerKey = "ck_sample_stranger"

type batchWorld struct {
	*world
	t   *testing.T
	api *lambdatest.Function
	// started receives an element for each request to start the steps function.
	started  chan struct{}
	settings []string
}

// answerBytes is the size of a response, chosen so that a few responses fill a stored part.
const answerBytes = 60_000

func newBatchWorld(t *testing.T) *batchWorld {
	t.Helper()
	w := &batchWorld{world: newWorld(t), t: t, started: make(chan struct{}, 1000)}
	model := httptest.NewServer(http.HandlerFunc(w.answer))
	t.Cleanup(model.Close)
	lambda := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
		w.started <- struct{}{}
		out.WriteHeader(http.StatusAccepted)
	}))
	t.Cleanup(lambda.Close)
	calls := awstest.NewProxy(t, lambda.URL, 1, awstest.Faults{})
	w.guard(t, calls)
	models, err := os.ReadFile(filepath.Join("..", "shared", "domain", "catalog", "catalog.yaml"))
	must(t, err)
	models = fmt.Appendf(models, "\n  - {id: counted, routes: [chat], context_length: 100000, max_output_length: 50, "+
		"price: {input: 1, output: 2, batch: 0.5}, upstreams: [{url: %q, model: counted}]}\n", model.URL+"/v1")
	models, err = catalog.JSON(models) // the format that a deployment uses for functions
	must(t, err)
	path := filepath.Join(t.TempDir(), "catalog.json")
	must(t, os.WriteFile(path, models, 0o600))
	w.settings = []string{"CUTROOM_CATALOG=" + path, "AWS_ENDPOINT_URL_LAMBDA=" + calls.URL}
	stranger, err := credential.NewKey(strangerKey, "stranger", credential.DefaultTier, "", time.Now())
	must(t, err)
	must(t, w.keys.CreateKey(t.Context(), audit.Operator(stranger.CreatedAt), stranger))
	w.api = w.start(t, "batches", w.settings...)
	return w
}

func (w *batchWorld) answer(out http.ResponseWriter, r *http.Request) {
	var asked struct {
		Messages []struct{ Content string }
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || len(asked.Messages) != 1 {
		out.WriteHeader(http.StatusBadRequest)
		return
	}
	question := asked.Messages[0].Content
	content, _ := json.Marshal(question + strings.Repeat(".", answerBytes))
	out.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(out, `{"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [{"index": 0,
		"finish_reason": "stop", "message": {"role": "assistant", "content": %s}}],
		"usage": {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20}}`, content)
}

func (w *batchWorld) call(key, method, resource, id, contentType string, body []byte) (int, []byte) {
	w.t.Helper()
	event, err := json.Marshal(events.APIGatewayProxyRequest{
		Resource: resource, Path: strings.NewReplacer("{file_id}", id, "{batch_id}", id).Replace(resource), HTTPMethod: method,
		Headers: map[string]string{"Authorization": "Bearer " + key, "Content-Type": contentType, "Host": "example.com"},
		MultiValueHeaders: map[string][]string{
			"Authorization": {"Bearer " + key}, "Content-Type": {contentType}, "Host": {"example.com"},
		},
		Body: base64.StdEncoding.EncodeToString(body), IsBase64Encoded: true,
		RequestContext: events.APIGatewayProxyRequestContext{RequestID: "c6af9ac6-7b61-11e6-9a41-93e8deadbeef"},
	})
	must(w.t, err)
	answer, err := w.api.Request(w.t.Context(), event)
	must(w.t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	must(w.t, err)
	return answer.Status, text
}

type shownBatch struct {
	ID     string
	Status string
	Output string `json:"output_file_id"`
	Errors string `json:"error_file_id"`
	Counts struct {
		Total, Completed, Failed int
	} `json:"request_counts"`
}

// create makes a batch with this number of requests from a file, and then deletes the file.
func (w *batchWorld) create(calls int) shownBatch {
	w.t.Helper()
	var form bytes.Buffer
	writer := multipart.NewWriter(&form)
	must(w.t, writer.WriteField("purpose", "batch"))
	part, err := writer.CreateFormFile("file", "calls.jsonl")
	must(w.t, err)
	for n := range calls {
		fmt.Fprintf(part, `{"custom_id": "call-%d", "method": "POST", "url": %q, "body": {"model": "counted", `+
			`"messages": [{"role": "user", "content": "line %d"}]}}`+"\n", n, chatRoute, n)
	}
	must(w.t, writer.Close())
	status, answer := w.call(sampleKey, http.MethodPost, "/v1/files", "", writer.FormDataContentType(), form.Bytes())
	var file struct{ ID string }
	if err := json.Unmarshal(answer, &file); err != nil || status != http.StatusOK {
		w.t.Fatalf("upload: %d %s", status, answer)
	}
	asked := fmt.Sprintf(`{"input_file_id": %q, "endpoint": %q, "completion_window": "24h"}`, file.ID, chatRoute)
	status, answer = w.call(sampleKey, http.MethodPost, "/v1/batches", "", "application/json", []byte(asked))
	var b shownBatch
	if err := json.Unmarshal(answer, &b); err != nil || status != http.StatusOK || b.Status != "validating" {
		w.t.Fatalf("create: %d %s", status, answer)
	}
	if status, answer := w.call(sampleKey, http.MethodDelete, "/v1/files/{file_id}", file.ID, "", nil); status != http.StatusOK {
		w.t.Fatalf("delete: %d %s", status, answer)
	}
	await.Receive(w.t, "w.started", w.started) // the request to start working on the batch
	return b
}

func (w *batchWorld) get(id string) (b shownBatch) {
	w.t.Helper()
	status, answer := w.call(sampleKey, http.MethodGet, "/v1/batches/{batch_id}", id, "", nil)
	if err := json.Unmarshal(answer, &b); err != nil || status != http.StatusOK {
		w.t.Fatalf("get: %d %s", status, answer)
	}
	return b
}

func (w *batchWorld) results(file string) map[string]resultLine {
	w.t.Helper()
	all := map[string]resultLine{}
	if file == "" {
		return all
	}
	status, answer := w.call(sampleKey, http.MethodGet, "/v1/files/{file_id}/content", file, "", nil)
	if status != http.StatusOK {
		w.t.Fatalf("content: %d %.300s", status, answer)
	}
	for line := range bytes.Lines(answer) {
		var one resultLine
		must(w.t, json.Unmarshal(line, &one))
		if _, twice := all[one.CustomID]; twice {
			w.t.Errorf("%s has two results", one.CustomID)
		}
		all[one.CustomID] = one
	}
	return all
}

type resultLine struct {
	CustomID string `json:"custom_id"`
	Response struct {
		Body struct {
			Choices []struct{ Message struct{ Content string } }
		}
	}
	Error struct{ Code string }
}

func (w *batchWorld) billed() (counts usage.Counts) {
	w.t.Helper()
	day := usage.DayOf(time.Now())
	totals, err := w.usage.Totals(w.t.Context(), "acme", usage.DayOf(time.Now().Add(-24*time.Hour)), day, usage.All)
	must(w.t, err)
	for _, total := range totals {
		if total.Model == "counted" {
			counts.Add(total.Counts)
		}
	}
	return counts
}

// Other accounts cannot see the batch.
func TestBatchLinesAreBilledOnce(t *testing.T) {
	t.Parallel()
	const lines = 30
	w := newBatchWorld(t)
	b := w.create(lines)
	ctx, cancel := context.WithTimeout(t.Context(), await.Max)
	defer cancel()
	_, err := w.start(t, "steps", w.settings...).Invoke(ctx, []byte(`{"source": "aws.events"}`))
	must(t, err)
	if b = w.get(b.ID); b.Status != "completed" {
		t.Fatalf("the batch is %+v", b)
	}
	results := w.results(b.Output)
	for n := range lines {
		got := results[fmt.Sprintf("call-%d", n)].Response.Body.Choices
		if want := fmt.Sprintf("line %d.", n); len(got) != 1 || !strings.HasPrefix(got[0].Message.Content, want) {
			t.Errorf("call %d: %.100v", n, got)
		}
	}
	if len(results) != lines || b.Counts.Completed != lines || b.Counts.Total != lines || b.Errors != "" {
		t.Errorf("%d results of %+v", len(results), b)
	}
	if got := w.billed(); got.Requests != lines || got.Cost != lines*15_000 {
		t.Errorf("billed: %+v", got)
	}
	files, _, err := w.files.List(t.Context(), "acme", "", 100, time.Now())
	must(t, err)
	files = slices.DeleteFunc(files, func(f file.File) bool { return f.Purpose != batch.OutputPurpose })
	if len(files) != 1 {
		t.Errorf("found %d files with results", len(files))
	}
	for _, resource := range []string{"/v1/batches", "/v1/files"} {
		status, answer := w.call(sampleKey, http.MethodGet, resource, "", "", nil)
		if want := map[string]string{"/v1/batches": b.ID, "/v1/files": b.Output}[resource]; status != http.StatusOK ||
			!bytes.Contains(answer, []byte(want)) {
			t.Errorf("%s: %d %s", resource, status, answer)
		}
	}
	for entry, err := range w.bucket.List(t.Context(), "batches/"+b.ID) {
		t.Errorf("%s remains, %v", entry.Name, err)
	}
	for _, call := range [][2]string{
		{http.MethodGet, "/v1/batches/{batch_id}"}, {http.MethodPost, "/v1/batches/{batch_id}/cancel"},
	} {
		if status, answer := w.call(strangerKey, call[0], call[1], b.ID, "", nil); status != http.StatusNotFound {
			t.Errorf("%v of another account: %d %s", call, status, answer)
		}
	}
	if status, _ := w.call(strangerKey, http.MethodGet, "/v1/files/{file_id}/content", b.Output, "", nil); status != http.StatusNotFound {
		t.Errorf("results of another account: %d", status)
	}
}
