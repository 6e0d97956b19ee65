package functions_test

import (
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cutroom/functions"
	"cutroom/shared/testkit/awstest"
	"cutroom/shared/testkit/iamtest"
	"cutroom/shared/testkit/patience"
)

// asked records the AWS calls of the roles in this package's tests.
var asked iamtest.Ledger

// unseen lists the permissions that no call of these tests needs.
var unseen = []iamtest.Unseen{
	{Role: "*", Action: "logs:*", Why: "Lambda and ECS write the logs."},
	{Role: "WorkerTaskRole", Action: "ecs:*TaskProtection", Why: "The agent of ECS calls it for the task."},
	{Role: "SmokeRole", Action: "ecs:StopTask", Why: "No task here takes longer than it may."},
	{Role: "*", Action: "dynamodb:*", Resource: "/stream/", Why: "Lambda reads the stream for the function."},
	{Role: "WebhooksRole", Action: "sqs:*", Resource: "-webhooks", Why: "Lambda takes the messages for the function."},
	{Role: "ReaperRole", Action: "sqs:*", Resource: "-dead-letters", Why: "Lambda takes the messages for the function."},
	{Role: "WorkerTaskRole", Action: "sqs:DeleteMessage", Resource: "-video", Why: "The jobs here are of images: the lanes are alike."},
	{Role: "WorkerTaskRole", Action: "states:SendTaskFailure", Why: "No job here fails in a worker; some do in the deploy's test."},
	{Role: "*", Action: "s3:AbortMultipartUpload", Why: "Large bytes that stop on their way; the suite of blobs stops some."},
	{Role: "*", Action: "s3:DeleteObject", Resource: "/jobs/*", Why: "The bytes of a job that was not accepted, or of a run that lost."},
	{Role: "*", Action: "s3:ListBucket", Why: "Without it S3 answers 403 where bytes are gone, not 404."},
	{Role: "*", Action: "lambda:InvokeFunction", Why: "Each that accepts jobs wakes workers; here images does."},
	{Role: "JobsRole", Action: "dynamodb:GetItem", Resource: "cutroom-dev-usage", Why: "A repetition where there is no room."},
	{Role: "ImagesRole", Action: "dynamodb:GetItem", Resource: "cutroom-dev-usage", Why: "A repetition where there is no room."},
	{Role: "MediaTaskRole", Action: "dynamodb:GetItem", Resource: "cutroom-dev-usage", Why: "A repetition while a limit refuses jobs."},
	{Role: "*", Action: "dynamodb:BatchGetItem", Resource: "cutroom-dev-sessions", Why: "No session is open here."},
	{Role: "*", Action: "dynamodb:DeleteItem", Resource: "cutroom-dev-jobs", Why: "A job whose execution could not begin."},
	{Role: "*", Action: "dynamodb:Query", Resource: "cutroom-dev-files/index/", Why: "The room that expired files make, when there is none."},
	{Role: "ImagesRole", Action: "dynamodb:DeleteItem", Resource: "cutroom-dev-usage", Why: "What a job held of a budget, when who comes upon it overdue ends it."},
	{Role: "InferenceRole", Action: "dynamodb:DeleteItem", Resource: "cutroom-dev-usage", Why: "A share of a budget that is over, or returns when nobody calls."},
	{Role: "StepsRole", Action: "dynamodb:DeleteItem", Resource: "cutroom-dev-usage", Why: "A share of a budget that is over."},
	{Role: "BatchesRole", Action: "dynamodb:DeleteItem", Resource: "cutroom-dev-usage", Why: "Records before an account's newest thousand."},
	{Role: "BatchesRole", Action: "s3:DeleteObject", Resource: "/batches/*", Why: "The input of a batch that was one too many."},
	{Role: "JobsRole", Action: "*", Resource: "/files/*", Why: "Files that came by signed URLs, at the first form that names them."},
	{Role: "JobsRole", Action: "dynamodb:*", Resource: "cutroom-dev-files", Why: "Files that came by signed URLs, at the first form that names them."},
	{Role: "ImagesRole", Action: "*", Resource: "/files/*", Why: "Forms of images may name files as those of jobs do."},
	{Role: "ImagesRole", Action: "dynamodb:*", Resource: "cutroom-dev-files", Why: "Forms of images may name files as those of jobs do."},
	{Role: "WorkerTaskRole", Action: "s3:DeleteObject", Resource: "/thumbnails/*", Why: "A file that was deleted while a job of it ran."},
	{Role: "ImagesRole", Action: "states:StopExecution", Why: "Jobs that are overdue are stopped by who comes upon them."},
	{Role: "C2paRole", Action: "dynamodb:UpdateItem", Resource: "cutroom-dev-jobs", Why: "Jobs that are overdue are ended by who comes upon them."},
	{Role: "ContentRole", Action: "dynamodb:UpdateItem", Resource: "cutroom-dev-jobs", Why: "Jobs that are overdue are ended by who comes upon them."},
}

// roleOf returns the name of a function's role.
func roleOf(function string) string { return strings.ToUpper(function[:1]) + function[1:] + "Role" }

// heldRoles returns the roles whose permissions must all be needed.
func heldRoles() []string {
	roles := []string{"WorkerTaskRole", "MediaTaskRole"}
	for _, name := range functions.Names() {
		roles = append(roles, roleOf(name))
	}
	return roles
}

// unneeded returns the roles' permissions that no call of this package's tests needed. It requires
// that all tests ran.
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
	// Workers with GPUs have the same role.
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

// A function without an AWS permission reports an ordinary failure, and does not reveal roles or
// resources to its client.
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
			if err != nil {
				t.Fatal(err)
			}
			// On a busy machine the attempts of an earlier call may all end at awsclient.AttemptTime. Then
			// the client sees the same failure, and the function does not make the rejected call.
			refused := patience.Await(t, "a refused call", func() []string {
				answer, err := f.Request(patience.Context(t), event)
				if err != nil {
					t.Fatal(err)
				}
				defer answer.Body.Close()
				body, err := io.ReadAll(answer.Body)
				if err != nil || answer.Status != http.StatusInternalServerError ||
					strings.TrimSpace(string(body)) != `{"detail":"Internal server error"}` {
					t.Fatalf("it responds with %d %s (%v)", answer.Status, body, err)
				}
				return w.proxy.Refused()
			}, func(refused []string) bool { return len(refused) > 0 })
			if !strings.Contains(refused[0], c.action) {
				t.Errorf("rejected calls: %v", refused)
			}
		})
	}
}
