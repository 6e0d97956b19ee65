package stepfn_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/adapter/stepfn"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
)

// write is an UpdateItem request, as sent by a program or described in a definition.
type write struct {
	TableName                 string
	Key                       map[string]map[string]any
	UpdateExpression          string
	ConditionExpression       string
	ExpressionAttributeNames  map[string]string
	ExpressionAttributeValues map[string]map[string]any
}

func TestStateMachineAndStoreMakeTheSameWrites(t *testing.T) {
	text, err := stepfn.Definition("aws", "jobs")
	if err != nil {
		t.Fatal(err)
	}
	var definition struct {
		States map[string]struct {
			Resource   string
			Parameters write
		}
	}
	if err := json.Unmarshal([]byte(text), &definition); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	calls := map[string]func(runs *dynamo.Runs) error{
		"FailRun": func(r *dynamo.Runs) error { return r.Fail(t.Context(), "job_1", "nonce", job.WorkerLostFailure(), now) },
		"FailJob": func(r *dynamo.Runs) error { return r.Fail(t.Context(), "job_1", "", job.CancelledFailure(), now) },
		"TimeOut": func(r *dynamo.Runs) error { return r.Fail(t.Context(), "job_1", "", job.TimeoutFailure(), now) },
		"FreeOpen": func(r *dynamo.Runs) error {
			return r.FreeOpen(t.Context(), dynamo.OpenEntry{Set: "account#acme", Element: "video/job_1"})
		},
	}
	for name, state := range definition.States {
		// Only executions fail jobs that have not started; package sqsqueue tests this.
		if state.Resource != "arn:aws:states:::dynamodb:updateItem" || name == "StartTimeOut" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			call, ok := calls[name]
			if !ok {
				t.Fatal("no known call of the store makes this write")
			}
			delete(calls, name)
			sent, described := sentBy(t, call), state.Parameters
			if sent.TableName != described.TableName || sent.UpdateExpression != described.UpdateExpression ||
				sent.ConditionExpression != described.ConditionExpression {
				t.Errorf("the definition has\n%+v\nthe store sends\n%+v", described, sent)
			}
			same(t, "names", asValues(sent.ExpressionAttributeNames), asValues(described.ExpressionAttributeNames))
			same(t, "values", sent.ExpressionAttributeValues, described.ExpressionAttributeValues)
			same(t, "key", sent.Key, described.Key)
		})
	}
	if len(calls) > 0 {
		t.Errorf("the definition lacks %v", calls)
	}
}

func sentBy(t *testing.T, call func(*dynamo.Runs) error) (sent write) {
	t.Helper()
	database := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil && strings.HasSuffix(r.Header.Get("X-Amz-Target"), "UpdateItem") {
			err = json.Unmarshal(body, &sent)
		}
		if err != nil {
			t.Error(err)
		}
		_, _ = io.WriteString(w, "{}") // after a failed test the client may be gone
	}))
	defer database.Close()
	runs := dynamo.NewRuns(dynamo.NewClient(aws.Config{
		Region: "us-east-1", BaseEndpoint: &database.URL, Credentials: credentials.NewStaticCredentialsProvider("id", "secret", ""),
	}), "jobs")
	// Fail reads the job after writing it, but here all responses are empty.
	if err := call(runs); err != nil && !fault.Is(err, fault.NotFound) {
		t.Fatal(err)
	}
	return sent
}

func asValues(names map[string]string) map[string]map[string]any {
	values := map[string]map[string]any{}
	for placeholder, name := range names {
		values[placeholder] = map[string]any{"S": name}
	}
	return values
}

// same compares sent items with their description. If the description has a path, such as {"S.$": "$.nonce"}, any
// value of that type matches.
func same(t *testing.T, what string, sent, described map[string]map[string]any) {
	t.Helper()
	for name := range described {
		if sent[name] == nil {
			t.Errorf("%s: the store does not send %s", what, name)
		}
	}
	for name := range sent {
		for kind, value := range sent[name] {
			constant, fixed := described[name][kind]
			if _, path := described[name][kind+".$"]; !path && (!fixed || fmt.Sprint(constant) != fmt.Sprint(value)) {
				t.Errorf("%s: %s is %v in the definition, but the store sends %v", what, name, described[name], sent[name])
			}
		}
	}
}
