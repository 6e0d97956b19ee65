package deployment

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	sfntypes "github.com/aws/aws-sdk-go-v2/service/sfn/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"cutroom/shared/domain/media/mediatest"
	"cutroom/shared/testkit/patience"
	"cutroom/shared/testkit/servertest"
)

// short returns a clip that is edited in a moment, long one that takes a while.
func short(t *testing.T) []byte { return clip(t, 0.4) }
func long(t *testing.T) []byte  { return clip(t, 4) }

// anything accepts every content type. Without it the local AWS takes a buffered
// binary answer for text.
const anything = "*/*"

func clip(t *testing.T, seconds float64) []byte {
	t.Helper()
	content, err := os.ReadFile(mediatest.Video{Seconds: seconds, FastStart: true}.Make(t))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// testJobs runs jobs on real workers, from the deployed queue to the content. The
// slow parts run in parallel.
func testJobs(t *testing.T, d *deployed) {
	t.Run("Completed", func(t *testing.T) { testCompleted(t, d) })
	t.Run("EngineError", func(t *testing.T) { testEngineError(t, d) })
	t.Run("LostWorker", func(t *testing.T) { testLostWorker(t, d) })
}

// testCompleted follows a job to its result: a key, a file, a job that refers to the
// file, a worker, the result in S3, the record and the content. It also edits an
// image whose caller waits.
func testCompleted(t *testing.T, d *deployed) {
	client := d.client(t, "completed")
	job := submit(t, client, []byte(uploaded(t, client, short(t))))
	if job.Status != "pending" {
		t.Errorf("the job begins as %s", job.Status)
	}
	waiting, err := client.Content(bounded(t), job.ID)
	if err == nil {
		t.Errorf("content before its end: %d", waiting.Status)
	}

	d.startWorker(t)
	job = ended(t, client, job.ID)
	if job.Status != "completed" || job.Progress != 1 || job.StartedAt == "" || job.CompletedAt == "" {
		t.Fatalf("the job ended as %+v", job)
	}
	whole, err := client.Get(bounded(t), "/v1/jobs/"+job.ID+"/content", "Accept", anything)
	if err != nil || whole.Status != http.StatusOK || len(whole.Body) == 0 {
		t.Fatalf("the content: %v %d", err, whole.Status)
	}
	if whole.Header.Get("Content-Type") != "video/mp4" || whole.Header.Get("ETag") == "" {
		t.Errorf("the content has the header %v", whole.Header)
	}
	part, err := client.Get(bounded(t), "/v1/jobs/"+job.ID+"/content", "Range", "bytes=10-19", "Accept", anything)
	if err != nil || part.Status != http.StatusPartialContent || !bytes.Equal(part.Body, whole.Body[10:20]) {
		t.Errorf("ten bytes of the content: %v %d %x", err, part.Status, part.Body)
	}
	// The thumbnails are stored after the job's end.
	until(t, "the job has its input, its result and its thumbnails", func(context.Context) (bool, error) {
		blobs := d.blobs(t, "jobs/"+job.ID[len(job.ID)-2:]+"/"+job.ID+"/")
		// That of a run that took long is there for a moment more.
		blobs = slices.DeleteFunc(blobs, func(name string) bool { return strings.Contains(name, "/preview-") })
		if len(blobs) > 3 {
			return false, fmt.Errorf("it has the blobs %v", blobs)
		}
		return len(blobs) == 3 && slices.ContainsFunc(blobs, func(name string) bool {
			return strings.Contains(name, "/thumbnails-")
		}), nil
	})
	execution := d.execution(t, job.ID)
	if execution.Status != sfntypes.ExecutionStatusSucceeded {
		t.Errorf("the execution is %s", execution.Status)
	}

	picture, err := os.ReadFile(filepath.Join(d.root, "testdata", "reference.jpg"))
	if err != nil {
		t.Fatal(err)
	}
	image, length, kind := servertest.Form{servertest.File("data", "a.jpg", picture),
		servertest.Text("prompt", "a pencil sketch")}.Encode()
	body, err := io.ReadAll(image)
	if err != nil {
		t.Fatal(err)
	}
	until(t, "an image is edited within the time of a call", func(ctx context.Context) (bool, error) {
		answer, err := client.Call(ctx, http.MethodPost, "/v1/generate/gen-image-2", bytes.NewReader(body), length,
			"Content-Type", kind, "Accept", anything)
		if err != nil || answer.Status == http.StatusGatewayTimeout {
			return false, err
		}
		if answer.Status != http.StatusOK || answer.Header.Get("Content-Type") != "image/png" ||
			!bytes.HasPrefix(answer.Body, []byte("\x89PNG")) {
			return false, fmt.Errorf("the image: %d %v %.200s", answer.Status, answer.Header, answer.Body)
		}
		return true, nil
	})
}

// testEngineError checks that an engine that fails, and an input that cannot be
// decoded, end the job and not the worker.
func testEngineError(t *testing.T, d *deployed) {
	client := d.client(t, "failing")
	job := submit(t, client, short(t))
	worker := d.startWorker(t, brokenEngine(t))
	job = ended(t, client, job.ID)
	if job.Status != "failed" || job.Error == nil || job.Error.Code != "engine_error" {
		t.Errorf("the job ended as %+v %+v", job, job.Error)
	}
	worker.stop(t)
	refused, err := client.Get(bounded(t), "/v1/jobs/"+job.ID+"/content")
	if err != nil || refused.Status != http.StatusConflict {
		t.Errorf("content of a failed job: %v %d", err, refused.Status)
	}
	if execution := d.execution(t, job.ID); execution.Status != sfntypes.ExecutionStatusSucceeded {
		t.Errorf("the execution that recorded the failure is %s", execution.Status)
	}

	job = submit(t, client, truncated(t))
	d.startWorker(t)
	job = ended(t, client, job.ID)
	if job.Status != "failed" || job.Error == nil || job.Error.Code != "invalid_input" {
		t.Errorf("the job of a broken clip ended as %+v %+v", job, job.Error)
	}
}

// truncated returns a clip with its whole header and none of its frames.
func truncated(t *testing.T) []byte {
	t.Helper()
	header, _, found := bytes.Cut(short(t), []byte("mdat"))
	if !found {
		t.Fatal("the clip has no mdat box")
	}
	return append(bytes.Clone(header), "mdat"...)
}

// testLostWorker checks that another worker takes the job of a killed one within a
// minute, from the same message, and that a worker that is told to stop hands its job
// back at once.
func testLostWorker(t *testing.T, d *deployed) {
	client := d.client(t, "lost")
	job := submit(t, client, long(t))
	processing := func(worker *workerProcess) {
		until(t, "a worker has the job", func(ctx context.Context) (bool, error) {
			return strings.Count(worker.log.String(), `"run started"`) > 0, nil
		})
	}
	first := d.startWorker(t)
	processing(first)
	first.stop(t)
	second := d.startWorker(t)
	processing(second)
	second.kill()
	third := d.startWorker(t)
	processing(third)
	job = ended(t, client, job.ID)
	if job.Status != "completed" {
		t.Errorf("the job ended as %+v %+v", job, job.Error)
	}
	// Only the lost run counts, not the one that was handed back.
	if !strings.Contains(third.log.String(), `"run":2`) {
		t.Errorf("the third worker made not the second run:\n%s", third.log)
	}
}

// testGivenUp checks that a job whose message has been received ten times goes to the
// dead-letter queue and ends, and that a message that is not about a job
// stays there.
func testGivenUp(t *testing.T, d *deployed) {
	client := d.client(t, "given-up")
	queue := sqs.NewFromConfig(d.cloud.Config())
	job := submit(t, client, short(t))
	url := d.outputs["VideoQueueUrl"]
	until(t, "the queue gives up on the job", func(ctx context.Context) (bool, error) {
		received, err := queue.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &url})
		if err != nil {
			return false, err
		}
		for _, message := range received.Messages {
			if _, err := queue.ChangeMessageVisibility(ctx,
				&sqs.ChangeMessageVisibilityInput{QueueUrl: &url, ReceiptHandle: message.ReceiptHandle}); err != nil {
				return false, err
			}
		}
		if len(received.Messages) > 0 {
			return false, nil
		}
		now, err := client.Job(ctx, job.ID)
		job = now
		return now.Ended(), err
	})
	if job.Error == nil || job.Error.Code != "worker_lost" {
		t.Errorf("the job ended as %+v %+v", job, job.Error)
	}
	if execution := d.execution(t, job.ID); execution.Status == sfntypes.ExecutionStatusSucceeded {
		t.Errorf("the execution of a job that was given up on is %s", execution.Status)
	}

	if _, err := queue.SendMessage(bounded(t),
		&sqs.SendMessageInput{QueueUrl: &url, MessageBody: aws.String("poison")}); err != nil {
		t.Fatal(err)
	}
	worker := d.startWorker(t)
	dead := strings.Replace(url, "-video", "-video-dead-letters", 1)
	until(t, "the poison is out of the way", func(ctx context.Context) (bool, error) {
		left, err := queue.GetQueueAttributes(ctx,
			&sqs.GetQueueAttributesInput{QueueUrl: &dead,
				AttributeNames: []sqstypes.QueueAttributeName{sqstypes.QueueAttributeNameAll}})
		if err != nil {
			return false, err
		}
		return left.Attributes["ApproximateNumberOfMessages"] != "0" ||
			left.Attributes["ApproximateNumberOfMessagesNotVisible"] != "0", nil
	})
	job = ended(t, client, submit(t, client, short(t)).ID)
	if job.Status != "completed" {
		t.Errorf("the job after the poison ended as %+v", job)
	}
	worker.stop(t)
	// It would be found by the check of the deploy.
	if _, err := queue.PurgeQueue(bounded(t), &sqs.PurgeQueueInput{QueueUrl: &dead}); err != nil {
		t.Fatal(err)
	}
}

// testAborted checks that a job fails if someone stops its execution. The local AWS
// sends no event for this, so the test sends the documented one to the function.
func testAborted(t *testing.T, d *deployed) {
	client := d.client(t, "aborted")
	job := submit(t, client, short(t))
	execution := d.execution(t, job.ID)
	if _, err := sfn.NewFromConfig(d.cloud.Config()).StopExecution(bounded(t),
		&sfn.StopExecutionInput{ExecutionArn: execution.ExecutionArn}); err != nil {
		t.Fatal(err)
	}
	event := fmt.Sprintf(`{"source":"aws.states","detail-type":"Step Functions Execution Status Change",`+
		`"detail":{"executionArn":%q,"stateMachineArn":%q,"name":%q,"status":"ABORTED","input":%q}}`,
		*execution.ExecutionArn, d.outputs["StateMachineArn"], job.ID, aws.ToString(execution.Input))
	d.invoke(t, "reaper", event)
	job = ended(t, client, job.ID)
	if job.Status != "failed" || job.Error == nil || job.Error.Code != "cancelled" {
		t.Errorf("the job ended as %+v %+v", job, job.Error)
	}
	d.drain(t)
}

// testTaskTimeout checks that the deployed state machine ends a job as overdue if
// nobody reports in time. It runs a copy with a shorter timeout.
func testTaskTimeout(t *testing.T, d *deployed) {
	client := d.client(t, "late")
	job := submit(t, client, short(t))
	machine := sfn.NewFromConfig(d.cloud.Config())
	execution := d.execution(t, job.ID)
	if _, err := machine.StopExecution(bounded(t),
		&sfn.StopExecutionInput{ExecutionArn: execution.ExecutionArn}); err != nil {
		t.Fatal(err)
	}
	deployed, err := machine.DescribeStateMachine(bounded(t),
		&sfn.DescribeStateMachineInput{StateMachineArn: aws.String(d.outputs["StateMachineArn"])})
	if err != nil {
		t.Fatal(err)
	}
	// The local AWS does not support TimeoutSecondsPath.
	definition := strings.Replace(*deployed.Definition, `"TimeoutSecondsPath": "$.timeout"`, `"TimeoutSeconds": 1`, 1)
	if definition == *deployed.Definition {
		t.Fatal("the deployed definition has no timeout of its input")
	}
	hasty, err := machine.CreateStateMachine(bounded(t),
		&sfn.CreateStateMachineInput{Name: aws.String("hasty"), Definition: &definition, RoleArn: deployed.RoleArn})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := machine.StartExecution(bounded(t),
		&sfn.StartExecutionInput{StateMachineArn: hasty.StateMachineArn, Name: &job.ID, Input: execution.Input}); err != nil {
		t.Fatal(err)
	}
	job = ended(t, client, job.ID)
	if job.Status != "failed" || job.Error == nil || job.Error.Code != "timeout" {
		t.Errorf("the job ended as %+v %+v", job, job.Error)
	}
	d.drain(t)
}

// testSleepingWorkers checks that nobody waits for an image if no worker is warm.
func testSleepingWorkers(t *testing.T, d *deployed) {
	client := d.client(t, "sleeping")
	picture, err := os.ReadFile(filepath.Join(d.root, "testdata", "reference.jpg"))
	if err != nil {
		t.Fatal(err)
	}
	body, length, kind := servertest.Form{servertest.File("data", "a.jpg", picture),
		servertest.Text("prompt", "x")}.Encode()
	answer, err := client.Call(bounded(t), http.MethodPost, "/v1/generate/gen-image-2", body, length, "Content-Type", kind)
	if err != nil || answer.Status != http.StatusServiceUnavailable || answer.Header.Get("Retry-After") == "" {
		t.Errorf("an image without workers: %v %d %v %s", err, answer.Status, answer.Header, answer.Body)
	}
}

// testDeployWhileJobsRun checks that a deploy that changes the functions loses no
// job, and that what it brings holds.
func testDeployWhileJobsRun(t *testing.T, d *deployed) {
	client := d.client(t, "deploy")
	waiting := submit(t, client, short(t))
	d.redeploy(t, append(slices.Clone(ownFiles), "origins=https://app.example.com", "logDays=7")...)
	after := submit(t, client, short(t))
	d.startWorker(t, d.ownCatalog())
	for _, job := range []servertest.Job{waiting, after} {
		if job = ended(t, client, job.ID); job.Status != "completed" {
			t.Errorf("a job ended as %+v %+v", job, job.Error)
		}
	}
	answer, err := client.Get(bounded(t), "/v1/files", "Origin", "https://app.example.com")
	if err != nil || answer.Header.Get("Access-Control-Allow-Origin") != "https://app.example.com" {
		t.Errorf("after the deploy: %v %v", err, answer.Header)
	}
	testOwnFiles(t, d)
}

// execution returns the execution of a job.
func (d *deployed) execution(t *testing.T, job string) *sfn.DescribeExecutionOutput {
	t.Helper()
	arn := strings.Replace(d.outputs["StateMachineArn"], ":stateMachine:", ":execution:", 1) + ":" + job
	execution, err := sfn.NewFromConfig(d.cloud.Config()).DescribeExecution(bounded(t),
		&sfn.DescribeExecutionInput{ExecutionArn: &arn})
	if err != nil {
		t.Fatal(err)
	}
	return execution
}

// blobs returns the names of the blobs with a prefix.
func (d *deployed) blobs(t *testing.T, prefix string) []string {
	t.Helper()
	client := s3.NewFromConfig(d.cloud.Config(), func(o *s3.Options) { o.UsePathStyle = true })
	found, err := client.ListObjectsV2(bounded(t),
		&s3.ListObjectsV2Input{Bucket: aws.String(d.outputs["BucketName"]), Prefix: &prefix})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, object := range found.Contents {
		names = append(names, *object.Key)
	}
	return names
}

// invoke sends an event to a function and fails the test if the function fails.
func (d *deployed) invoke(t *testing.T, function, event string) {
	t.Helper()
	name := "cutroom-" + stage + "-" + function
	answer, err := lambda.NewFromConfig(d.cloud.Config()).Invoke(bounded(t),
		&lambda.InvokeInput{FunctionName: &name, Payload: []byte(event)})
	if err != nil {
		t.Fatal(err)
	}
	if answer.FunctionError != nil {
		t.Fatalf("%s: %s %s", function, *answer.FunctionError, answer.Payload)
	}
}

// drain removes the messages of jobs that ended without a worker from the queue.
func (d *deployed) drain(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience.Max)
	defer cancel()
	if _, err := sqs.NewFromConfig(d.cloud.Config()).PurgeQueue(ctx,
		&sqs.PurgeQueueInput{QueueUrl: aws.String(d.outputs["VideoQueueUrl"])}); err != nil {
		t.Fatal(err)
	}
}

// uploaded stores a file and returns its id.
func uploaded(t *testing.T, client *servertest.Client, content []byte) string {
	t.Helper()
	var file struct{ ID string }
	body, length, kind := servertest.Form{servertest.File("file", "clip.mp4", content)}.Encode()
	answer, err := client.Call(bounded(t), http.MethodPost, "/v1/files", body, length, "Content-Type", kind)
	if err != nil || answer.Status != http.StatusOK || json.Unmarshal(answer.Body, &file) != nil {
		t.Fatalf("the upload: %v %d %s", err, answer.Status, answer.Body)
	}
	return file.ID
}
