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

// calls is the beginning of a function: how it calls the Runtime API.
const calls = `
import http.client, os, signal, threading

def call(method, path, body=None):
    connection = http.client.HTTPConnection(os.environ["AWS_LAMBDA_RUNTIME_API"])
    connection.request(method, "/2018-06-01/runtime/invocation/" + path, body)
    answer = connection.getresponse()
    return answer.getheader("Lambda-Runtime-Aws-Request-Id"), answer.read()
`

// greedy is a function that records its events and answers each of them. When told
// to stop it goes on for a moment, as any function does on a busy machine.
const greedy = calls + `
signal.signal(signal.SIGTERM, lambda *_: threading.Timer(0.3, os._exit, [0]).start())

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
		Code:        &types.FunctionCode{ZipFile: archive(t, "bootstrap", "#!"+awstest.Tool(t, "python/bin/python")+greedy)},
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

// reader is a function that answers with what a file has that a variable names.
const reader = calls + `
while True:
    id, event = call("GET", "next")
    call("POST", id + "/response", open(os.environ["NAMED"]).read())
`

// A variable names a file of a layer, of the last one that has it.
func TestAFunctionReadsItsLayers(t *testing.T) {
	cloud := awstest.Start(t, "LAMBDA_EXECUTOR=local")
	client := lambda.NewFromConfig(cloud.Config())
	var layers []string
	for _, content := range []string{`{"layer": 1}`, `{"layer": 2}`} {
		made, err := client.PublishLayerVersion(t.Context(), &lambda.PublishLayerVersionInput{
			LayerName: aws.String("settings"), Content: &types.LayerVersionContentInput{ZipFile: archive(t, "a.json", content)},
		})
		if err != nil {
			t.Fatal(err)
		}
		layers = append(layers, *made.LayerVersionArn)
	}
	if _, err := client.CreateFunction(t.Context(), &lambda.CreateFunctionInput{
		FunctionName: aws.String("reader"), Role: aws.String("arn:aws:iam::" + awstest.Account + ":role/reader"),
		Runtime: types.RuntimeProvidedal2023, Handler: aws.String("bootstrap"), Layers: layers,
		Code:        &types.FunctionCode{ZipFile: archive(t, "bootstrap", "#!"+awstest.Tool(t, "python/bin/python")+reader)},
		Environment: &types.Environment{Variables: map[string]string{"NAMED": "/opt/a.json"}},
	}); err != nil {
		t.Fatal(err)
	}
	answer, err := client.Invoke(t.Context(), &lambda.InvokeInput{FunctionName: aws.String("reader"), Payload: []byte(`{}`)})
	if err != nil || answer.FunctionError != nil || string(answer.Payload) != `{"layer": 2}` {
		t.Errorf("%v %s", err, answer.Payload)
	}
}

// archive returns a ZIP archive of one file, such as the deployment package of a function.
func archive(t *testing.T, name, text string) []byte {
	t.Helper()
	var content bytes.Buffer
	writer := zip.NewWriter(&content)
	file, err := writer.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return content.Bytes()
}
