package functions_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/sfn"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/file"
	"cutroom/shared/domain/job"
	"cutroom/shared/testkit/awstest"
	"cutroom/shared/testkit/lambdatest"
	"cutroom/shared/testkit/patience"
)

// trouble is the share of AWS calls that fail, at random.
var trouble = awstest.Faults{Throttled: 0.1, Failed: 0.06, LostCalls: 0.06, LostAnswers: 0.1, Silent: 0.01, Slow: 0.05}

// Whatever fails between the functions and AWS: a file that was acknowledged exists,
// and all files are counted; an accepted job is done once; the usage of completions
// is counted once.
func TestNothingIsLostOrDoubledInTrouble(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.faults = trouble
	t.Run("files", w.testUploads)
	t.Run("inference", w.testCompletions)
	t.Run("jobs", w.testSubmissions)
}

func (w *world) testUploads(t *testing.T) {
	f, ctx := w.start(t, "files"), t.Context()
	acknowledged := 0
	for i := range 15 {
		content := bytes.Repeat([]byte{byte(i)}, 1000+i)
		form := "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\n" + string(content) +
			"\r\n--b--\r\n"
		status, body := request(t, f, filepath.Join("files", "upload"), "multipart/form-data; boundary=b", form)
		if status >= 500 {
			continue
		}
		var reference struct{ ID string }
		if status != 200 || json.Unmarshal(body, &reference) != nil {
			t.Fatalf("%d %s", status, body)
		}
		acknowledged++
		stored, err := w.files.Get(ctx, "acme", reference.ID, time.Now())
		if err != nil || stored.MD5 != md5Of(content) || !bytes.Equal(w.stored(t, stored.Blob), content) {
			t.Errorf("%s was acknowledged and is %+v, %v", reference.ID, stored, err)
		}
	}
	if acknowledged < 9 {
		t.Errorf("%d uploads were acknowledged, which proves nothing", acknowledged)
	}
	listed, _, err := w.files.List(ctx, "acme", "", 1000, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	var size int64
	for _, f := range listed {
		size += f.Size
	}
	// The count of an account's bytes shows when it refuses one more byte. The
	// events' announced file is counted and not listed.
	promised, err := w.files.PendingUpload(ctx, samplePromise)
	if err != nil {
		t.Fatal(err)
	}
	size += promised.Size
	now := time.Now()
	more := file.File{
		ID: "file_0BxOneMore00000000000000000", Account: "acme", Key: promised.Key, Filename: "a", MIME: "text/plain",
		Size: 1, MD5: md5Of([]byte("1")),
		Blob: "files/one-more", CreatedAt: now, Lifetime: time.Hour, ExpiresAt: now.Add(time.Hour),
	}
	if err := w.files.Create(ctx, more, size); !fault.Is(err, fault.Limited) {
		t.Errorf("a byte over the %d that are stored: %v", size, err)
	}
	if err := w.files.Create(ctx, more, size+1); err != nil {
		t.Errorf("a byte beside the %d that are stored: %v", size, err)
	}
}

func (w *world) testSubmissions(t *testing.T) {
	f, ctx := w.start(t, "jobs"), t.Context()
	const submissions = 8
	var accepted []string
	for range submissions {
		status, body := request(t, f, filepath.Join("jobs", "image"), "", "")
		if status >= 500 {
			continue
		}
		var answer struct {
			ID string `json:"job_id"`
		}
		if status != 200 || json.Unmarshal(body, &answer) != nil {
			t.Fatalf("%d %s", status, body)
		}
		accepted = append(accepted, answer.ID)
	}
	if len(accepted) < 4 {
		t.Errorf("%d jobs were accepted, which proves nothing", len(accepted))
	}
	// shared/adapter/sqsqueue tests a worker whose calls fail.
	w.faults = awstest.Faults{}
	w.work(t)
	for _, id := range accepted {
		j := patience.Await(t, id+", which was accepted, ends", func() job.Job {
			j, err := w.jobs.Get(ctx, id)
			must(t, err)
			return j
		}, func(j job.Job) bool { return j.Status.Terminal() })
		sum := sha256.Sum256(w.stored(t, j.Result.Blob))
		if j.Status != job.Completed || hex.EncodeToString(sum[:]) != j.Result.SHA256 {
			t.Errorf("%s is %s %+v", id, j.Status, j.Failure)
		}
	}
	// Executions have the names of their jobs, so each job has at most one. There are
	// none besides those of jobs that were accepted, or may have been.
	executions, err := sfn.NewFromConfig(w.cloud.Config()).ListExecutions(ctx,
		&sfn.ListExecutionsInput{StateMachineArn: &w.machine})
	if err != nil || len(executions.Executions) < len(accepted) || len(executions.Executions) > submissions {
		t.Errorf("%d executions for %d jobs that were accepted, %v", len(executions.Executions), len(accepted), err)
	}
}

func (w *world) testCompletions(t *testing.T) {
	f := w.start(t, "inference")
	answered := int64(0)
	for range 15 {
		status, body := request(t, f, filepath.Join("inference", "chat"), "", "")
		switch {
		case status == 200:
			answered++
		case status < 500:
			t.Fatalf("%d %s", status, body)
		}
	}
	if answered < 9 {
		t.Errorf("%d completions were answered, which proves nothing", answered)
	}
	if metered := w.metered(t); metered.Requests != answered {
		t.Errorf("%d completions were answered, counted are %+v", answered, metered)
	}
}

// request sends the event of a file to a function, optionally with another body. A
// failed invocation is a 502, as API Gateway answers it.
func request(t *testing.T, f *lambdatest.Function, name, kind, body string) (status int, answer []byte) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "events", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		var event events.APIGatewayProxyRequest
		if err := json.Unmarshal(text, &event); err != nil {
			t.Fatal(err)
		}
		event.Body, event.IsBase64Encoded = base64.StdEncoding.EncodeToString([]byte(body)), true
		event.Headers["Content-Type"], event.MultiValueHeaders["Content-Type"] = kind, []string{kind}
		if text, err = json.Marshal(event); err != nil {
			t.Fatal(err)
		}
	}
	answered, err := f.Request(t.Context(), text)
	if err != nil {
		t.Log(err)
		return 502, nil
	}
	defer answered.Body.Close()
	content, err := io.ReadAll(answered.Body)
	if err != nil {
		return 502, []byte(fmt.Sprint(err))
	}
	return answered.Status, content
}
