package functions_test

import (
	"encoding/json"
	"errors"
	"flag"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cutroom/functions"
	"cutroom/shared/testkit/await"
	"cutroom/shared/testkit/awstest"
	"cutroom/shared/testkit/iamtest"
	"cutroom/shared/testkit/lambdatest"
)

// asked records the AWS calls that each role makes in this package's tests.
var asked iamtest.Ledger

// unseen lists the permissions that no call in these tests needs.
var unseen = []iamtest.Unseen{
	{Role: "*", Action: "logs:*", Why: "Lambda and ECS write the logs."},
	{Role: "WorkerTaskRole", Action: "ecs:*TaskProtection", Why: "The agent of ECS calls it for the task."},
	{Role: "*", Action: "dynamodb:*", Resource: "/stream/", Why: "Lambda reads the stream for the function."},
	{Role: "WebhooksRole", Action: "sqs:*", Resource: "-webhooks", Why: "Lambda takes the messages for the function."},
	{Role: "ReaperRole", Action: "sqs:*", Resource: "-dead-letters", Why: "Lambda takes the messages for the function."},
	{Role: "WorkerTaskRole", Action: "sqs:ChangeMessageVisibility", Why: "The jobs here end before their leases are extended."},
	{Role: "WorkerTaskRole", Action: "sqs:DeleteMessage", Resource: "-video", Why: "The jobs here edit images; the lanes work alike."},
	{Role: "WorkerTaskRole", Action: "states:SendTaskFailure", Why: "No job here fails in a worker; the deployment test has some."},
	{Role: "*", Action: "s3:AbortMultipartUpload", Why: "For interrupted large uploads; the conformance suite of blobs has some."},
	{Role: "*", Action: "s3:DeleteObject", Resource: "/jobs/*", Why: "For the bytes of a rejected job or of a lost run."},
	{Role: "*", Action: "s3:ListBucket", Why: "Without it, S3 returns 403 instead of 404 for missing bytes."},
	{Role: "*", Action: "lambda:InvokeFunction", Why: "Every function that accepts jobs wakes workers; here only images does."},
	{Role: "JobsRole", Action: "dynamodb:GetItem", Resource: "cutroom-dev-usage", Why: "For a repeated request while the queue is full."},
	{Role: "ImagesRole", Action: "dynamodb:GetItem", Resource: "cutroom-dev-usage", Why: "For a repeated request while the queue is full."},
	{Role: "MediaTaskRole", Action: "dynamodb:GetItem", Resource: "cutroom-dev-usage", Why: "For a repeated request while a limit rejects jobs."},
	{Role: "*", Action: "dynamodb:BatchGetItem", Resource: "cutroom-dev-sessions", Why: "No session is open here."},
	{Role: "*", Action: "dynamodb:DeleteItem", Resource: "cutroom-dev-jobs", Why: "For a job whose execution could not be started."},
	{Role: "*", Action: "dynamodb:Query", Resource: "cutroom-dev-files/index/", Why: "For expired files when the storage is full."},
	{Role: "ImagesRole", Action: "dynamodb:DeleteItem", Resource: "cutroom-dev-usage", Why: "For the budget hold of an overdue job."},
	{Role: "InferenceRole", Action: "dynamodb:DeleteItem", Resource: "cutroom-dev-usage", Why: "For an expired or unused allocation of a budget."},
	{Role: "StepsRole", Action: "dynamodb:DeleteItem", Resource: "cutroom-dev-usage", Why: "For an expired allocation of a budget."},
	{Role: "BatchesRole", Action: "dynamodb:DeleteItem", Resource: "cutroom-dev-usage", Why: "For records older than the account's newest thousand."},
	{Role: "BatchesRole", Action: "s3:DeleteObject", Resource: "/batches/*", Why: "For the input of a batch over the limit."},
	{Role: "JobsRole", Action: "*", Resource: "/files/*", Why: "For the first use of a file from a signed URL."},
	{Role: "JobsRole", Action: "dynamodb:*", Resource: "cutroom-dev-files", Why: "For the first use of a file from a signed URL."},
	{Role: "ImagesRole", Action: "*", Resource: "/files/*", Why: "For stored files in forms of images."},
	{Role: "ImagesRole", Action: "dynamodb:*", Resource: "cutroom-dev-files", Why: "For stored files in forms of images."},
	{Role: "WorkerTaskRole", Action: "s3:DeleteObject", Resource: "/thumbnails/*", Why: "For a file that was deleted while its job ran."},
	{Role: "ImagesRole", Action: "states:StopExecution", Why: "For overdue jobs, which the next reader stops."},
	{Role: "C2paRole", Action: "dynamodb:UpdateItem", Resource: "cutroom-dev-jobs", Why: "For overdue jobs, which the next reader ends."},
	{Role: "ContentRole", Action: "dynamodb:UpdateItem", Resource: "cutroom-dev-jobs", Why: "For overdue jobs, which the next reader ends."},
}

func roleOf(function string) string { return strings.ToUpper(function[:1]) + function[1:] + "Role" }

// heldRoles returns the roles that must not have unneeded permissions.
func heldRoles() []string {
	roles := []string{"WorkerTaskRole", "MediaTaskRole"}
	for _, name := range functions.Names() {
		roles = append(roles, roleOf(name))
	}
	return roles
}

// unneeded returns the permissions that no call in these tests needed. It is meaningful only after
// all tests have run.
func unneeded() ([]string, error) {
	if flag.Lookup("test.run").Value.String() != "" || flag.Lookup("test.skip").Value.String() != "" {
		return nil, nil
	}
	text, err := os.ReadFile(filepath.Join("..", "infra", "testdata", "policies.json"))
	if err != nil {
		return nil, err
	}
	var rights iamtest.Rights
	if err := json.Unmarshal(text, &rights); err != nil {
		return nil, err
	}
	account, err := iamtest.NewAccount(awstest.Here, rights)
	if err != nil {
		return nil, err
	}
	wrong, err := asked.Judge(account, heldRoles(), unseen)
	if err != nil {
		return nil, err
	}
	// GPU workers have a copy of this role, so it must permit the same calls.
	for _, r := range asked.Of("WorkerTaskRole") {
		decided, err := account.Decide("gpu/TaskRole", r)
		if err != nil {
			return nil, err
		}
		if !decided.Allowed {
			wrong = append(wrong, decided.Reason)
		}
	}
	return wrong, nil
}

// If no record of an event succeeded, Lambda counts an error. It would not count failed records.
func TestEventsThatFailEntirelyAreErrors(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, c := range []struct{ name, action, event string }{
		{"expiry", "s3:DeleteObject", "expired"}, {"webhooks", "sqs:SendMessage", "warned"},
	} {
		w.account = awstest.Deployed(t).Without(roleOf(c.name), c.action)
		event, err := os.ReadFile(filepath.Join("..", "events", c.name, c.event+".json"))
		must(t, err)
		answer, err := w.start(t, c.name).Invoke(await.Context(t), event)
		var failed *lambdatest.FunctionError
		if rejected := w.proxy.Rejected(); !errors.As(err, &failed) || len(rejected) == 0 {
			t.Errorf("%s: %s, %v; rejected calls: %v", c.name, answer, err, rejected)
		}
	}
}

// The function does not reveal roles or resources to its client.
func TestMissingPermissionIsNotRevealed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, c := range []struct{ name, action, event string }{
		{"files", "dynamodb:GetItem", "list"},
		{"files", "dynamodb:Query", "list"},
		{"jobs", "dynamodb:Query", "list"},
		{"content", "s3:GetObject", "whole"},
		{"quota", "dynamodb:GetItem", "read"},
	} {
		t.Run(c.name+" without "+c.action, func(t *testing.T) {
			w.account = awstest.Deployed(t).Without(roleOf(c.name), c.action)
			f := w.start(t, c.name)
			event, err := os.ReadFile(filepath.Join("..", "events", c.name, c.event+".json"))
			must(t, err)
			// On a busy machine, all attempts of an earlier call may time out (awsclient.AttemptTime). Then the
			// client sees the same failure, but the function never makes the call that would be rejected.
			rejected := await.Value(t, "a rejected call", func() []string {
				answer, err := f.Request(await.Context(t), event)
				must(t, err)
				defer answer.Body.Close()
				body, err := io.ReadAll(answer.Body)
				if err != nil || answer.Status != http.StatusInternalServerError ||
					strings.TrimSpace(string(body)) != `{"detail":"Internal server error"}` {
					t.Fatalf("it responds with %d %s (%v)", answer.Status, body, err)
				}
				return w.proxy.Rejected()
			}, func(rejected []string) bool { return len(rejected) > 0 })
			if !strings.Contains(rejected[0], c.action) {
				t.Errorf("rejected calls: %v", rejected)
			}
		})
	}
}
