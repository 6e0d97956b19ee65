package awstest_test

import (
	"archive/zip"
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"cutroom/shared/testkit/awstest"
)

// greedy is a function that records its events and answers each of them. When told
// to stop it goes on for a moment, as any function does on a busy machine.
const greedy = `
import http.client, os, signal, threading

signal.signal(signal.SIGTERM, lambda *_: threading.Timer(0.3, os._exit, [0]).start())

def call(method, path, body=None):
    connection = http.client.HTTPConnection(os.environ["AWS_LAMBDA_RUNTIME_API"])
    connection.request(method, "/2018-06-01/runtime/invocation/" + path, body)
    answer = connection.getresponse()
    return answer.getheader("Lambda-Runtime-Aws-Request-Id"), answer.read()

while True:
    id, event = call("GET", "next")
    with open(os.environ["TAKEN"], "ab") as taken:
        taken.write(event + b"\n")
    call("POST", id + "/response", event)
`

// Lambda sends a function an event once, however long the function then runs.
func TestAFunctionIsGivenEachEventOnce(t *testing.T) {
	cloud := awstest.Start(t, "LAMBDA_EXECUTOR=local")
	client := lambda.NewFromConfig(cloud.Config())
	taken := filepath.Join(t.TempDir(), "taken")
	if _, err := client.CreateFunction(t.Context(), &lambda.CreateFunctionInput{
		FunctionName: aws.String("greedy"), Role: aws.String("arn:aws:iam::" + awstest.Account + ":role/greedy"),
		Runtime: types.RuntimeProvidedal2023, Handler: aws.String("bootstrap"),
		Code:        &types.FunctionCode{ZipFile: archive(t, "#!"+awstest.Tool(t, "python/bin/python")+greedy)},
		Environment: &types.Environment{Variables: map[string]string{"TAKEN": taken}},
	}); err != nil {
		t.Fatal(err)
	}
	for _, event := range []string{`{"n": 1}`, `{"n": 2}`} {
		answer, err := client.Invoke(t.Context(), &lambda.InvokeInput{FunctionName: aws.String("greedy"),
			Payload: []byte(event)})
		if err != nil || answer.FunctionError != nil || string(answer.Payload) != event {
			t.Fatalf("%s: %v %s", event, err, answer.Payload)
		}
	}
	events, err := os.ReadFile(taken)
	if want := "{\"n\": 1}\n{\"n\": 2}\n"; err != nil || string(events) != want {
		t.Errorf("it was given %q (%v), want %q", events, err, want)
	}
}

// archive returns the deployment package of a function.
func archive(t *testing.T, bootstrap string) []byte {
	t.Helper()
	var content bytes.Buffer
	writer := zip.NewWriter(&content)
	file, err := writer.Create("bootstrap")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.Write([]byte(bootstrap)); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return content.Bytes()
}
