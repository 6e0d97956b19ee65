package awstest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The local AWS checks no permissions. The proxy therefore records which ones each
// call would need, as IAM names the action and the deploy the resource, such as
// "dynamodb:PutItem on table jobs", and HoldToRole compares them with the roles.

// HoldToRole fails the test for each call through the proxy that a role of the
// deploy does not allow. A test of infra compares the roles listed here with the
// template.
func (p *Proxy) HoldToRole(t T, role string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(moduleRoot(t), "infra", "testdata", "permissions.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var allowed []string
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) == 3 && words[0] == role {
			allowed = append(allowed, words[1]+" on "+deployedThing(words[2]))
		}
	}
	if len(allowed) == 0 {
		t.Fatalf("the deploy has no role %s", role)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for action := range p.needed {
		if !slices.Contains(allowed, action) {
			t.Errorf("%s does not allow %s, which was called", role, action)
		}
	}
}

// deployedThing names a resource of the template.
func deployedThing(resource string) string {
	table, index := strings.CutSuffix(resource, "/index/*")
	switch name, isTable := strings.CutSuffix(table, "Table"); {
	case index:
		return "index of " + strings.ToLower(name)
	case isTable:
		return "table " + strings.ToLower(name)
	}
	_, name, _ := strings.Cut(resource, "/")
	switch {
	case strings.Contains(resource, ":s3:::"):
		return blobs(name)
	case resource == "VideoQueue" || resource == "ImageQueue" || resource == "WebhookQueue":
		return "queue"
	case strings.Contains(resource, ":stateMachine:"):
		return "state machine"
	case strings.Contains(resource, ":execution:"):
		return "execution"
	case strings.Contains(resource, ":service/"):
		return "service"
	}
	return strings.ToLower(resource)
}

// blobs returns the kind of a blob by its name, and "bucket" without one.
func blobs(name string) string {
	prefix, _, named := strings.Cut(name, "/")
	if !named {
		return "bucket"
	}
	return "blobs " + prefix + "/"
}

// need records the permissions of a call, by its request and the status of its
// answer.
func (p *Proxy) need(r *http.Request, body []byte, status int) {
	var needed []string
	service, operation, _ := strings.Cut(Operation(r), ".")
	switch service {
	case "S3":
		needed = blobActions(r, status)
	case "DynamoDB":
		needed = recordActions(operation, body)
	case "SQS":
		needed = []string{"sqs:" + operation + " on queue"}
	case "StepFunctions":
		needed = []string{"states:" + operation + " on state machine"}
		if operation == "StopExecution" {
			needed = []string{"states:" + operation + " on execution"}
		}
	case "AmazonEC2ContainerServiceV20141113":
		needed = []string{"ecs:" + operation + " on service"}
	default:
		needed = []string{service + ":" + operation + " on " + service}
		if service == "secretsmanager" {
			needed = []string{service + ":" + operation + " on secret"}
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, action := range needed {
		p.needed[action] = true
	}
}

// blobActions returns the actions that a call to S3 needs.
func blobActions(r *http.Request, status int) []string {
	_, name, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	_, uploading := r.URL.Query()["uploadId"]
	action := map[string]string{
		http.MethodGet: "GetObject", http.MethodHead: "GetObject", http.MethodPut: "PutObject", http.MethodPost: "PutObject",
		http.MethodDelete: "DeleteObject",
	}[r.Method]
	if r.Method == http.MethodDelete && uploading {
		action = "AbortMultipartUpload"
	}
	needed := []string{"s3:" + action + " on " + blobs(name)}
	if source := r.Header.Get("X-Amz-Copy-Source"); source != "" {
		_, name, _ := strings.Cut(strings.TrimPrefix(source, "/"), "/")
		needed = append(needed, "s3:GetObject on "+blobs(name))
	}
	// Without permission to list the bucket, S3 answers 403 for a missing object.
	if status == http.StatusNotFound && action == "GetObject" {
		needed = append(needed, "s3:ListBucket on bucket")
	}
	return needed
}

// recordActions returns the actions that a call to DynamoDB needs; for a
// transaction, those of each of its items.
func recordActions(operation string, body []byte) []string {
	var call struct {
		TableName, IndexName string
		RequestItems         map[string]any
		TransactItems        []map[string]struct{ TableName string }
	}
	if err := json.Unmarshal(body, &call); err != nil {
		return []string{fmt.Sprintf("dynamodb:%s on what cannot be read: %v", operation, err)}
	}
	on := func(action, table string) string {
		return "dynamodb:" + action + " on table " + table[strings.LastIndex(table, "-")+1:]
	}
	var needed []string
	for _, item := range call.TransactItems {
		for part, of := range item {
			action := map[string]string{"Put": "PutItem", "Update": "UpdateItem", "Delete": "DeleteItem",
				"ConditionCheck": "ConditionCheckItem", "Get": "GetItem"}[part]
			needed = append(needed, on(action, of.TableName))
		}
	}
	for table := range call.RequestItems {
		needed = append(needed, on(operation, table))
	}
	switch {
	case call.IndexName != "":
		needed = append(needed, strings.Replace(on(operation, call.TableName), " on table ", " on index of ", 1))
	case call.TableName != "":
		needed = append(needed, on(operation, call.TableName))
	}
	return needed
}
