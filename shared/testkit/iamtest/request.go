package iamtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Names maps resource names in calls to the account's names.
type Names struct {
	Place
	// Rename returns the account's name for a name in a call. If it is nil, names stay unchanged.
	Rename func(name string) string
}

func (n Names) name(name string) string {
	if n.Rename == nil {
		return name
	}
	return n.Rename(name)
}

// Caller returns the access key that signed a request and the service that it was signed for, or ""
// if the request is unsigned. The caller of a signed URL is its signer.
func Caller(r *http.Request) (accessKey, service string) {
	credential := r.URL.Query().Get("X-Amz-Credential")
	if _, rest, ok := strings.Cut(r.Header.Get("Authorization"), "Credential="); ok {
		credential, _, _ = strings.Cut(rest, ",")
	}
	// The parts are the access key, the day, the region, the service and "aws4_request".
	parts := strings.Split(strings.TrimSpace(credential), "/")
	if len(parts) != 5 {
		return "", ""
	}
	return parts[0], parts[3]
}

// Requests returns the authorization requests that an AWS call causes, each with an action and a resource.
//
// Errors: the call's action or resource is unknown here.
func (n Names) Requests(r *http.Request, body []byte) ([]Request, error) {
	_, service := Caller(r)
	_, operation, targeted := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	var requests []Request
	var err error
	switch {
	case service == "s3" || service == "" && !targeted:
		requests, err = n.ofS3(r)
	case service == "lambda":
		requests, err = n.ofLambda(r)
	case service == "cloudformation":
		requests, err = n.ofStack(body)
	case service == "ec2":
		requests, err = ofNetwork(body)
	case !targeted:
		err = fmt.Errorf("%s %s of %s has no known action", r.Method, r.URL.Path, service)
	default:
		requests, err = n.ofTarget(service, operation, body)
	}
	for i := range requests {
		// In AWS, clients use current TLS. The local AWS has no TLS.
		context := map[string][]string{"aws:SecureTransport": {"true"}, "s3:TlsVersion": {"1.3"}}
		maps.Copy(context, requests[i].Context)
		requests[i].Context = context
	}
	return requests, err
}

// ofStack handles CloudFormation calls, which are form-encoded.
func (n Names) ofStack(body []byte) ([]Request, error) {
	call, err := url.ParseQuery(string(body))
	if err == nil && call.Get("StackName") == "" {
		err = errors.New("it has no stack name")
	}
	if err != nil {
		return nil, fmt.Errorf("%.200s has no known resource: %w", body, err)
	}
	return []Request{{Action: "cloudformation:" + call.Get("Action"), Resource: call.Get("StackName")}}, nil
}

// ofNetwork handles EC2 calls, which are form-encoded. List calls have no resource.
func ofNetwork(body []byte) ([]Request, error) {
	call, err := url.ParseQuery(string(body))
	if err != nil || !strings.HasPrefix(call.Get("Action"), "Describe") {
		return nil, fmt.Errorf("%.200s has no known action", body)
	}
	return []Request{{Action: "ec2:" + call.Get("Action"), Resource: "*"}}, nil
}

// ofTasks handles calls about ECS tasks. Running a task also passes roles to it. Only AWS knows
// these roles, because they are in the task definition.
func (n Names) ofTasks(operation, cluster, definition string, tasks []string) []Request {
	if definition == "" {
		var requests []Request
		for _, task := range tasks {
			requests = append(requests, Request{Action: "ecs:" + operation, Resource: task})
		}
		return requests
	}
	requests := []Request{{Action: "ecs:" + operation, Resource: definition,
		Context: map[string][]string{"ecs:cluster": {n.ARN("ecs", "cluster/"+n.name(cluster))}}}}
	for _, role := range []string{"task role", "execution role"} {
		requests = append(requests, Request{Action: "iam:PassRole", Resource: n.ARN("iam", "role/"+n.name(role)),
			Context: map[string][]string{"iam:PassedToService": {"ecs-tasks.amazonaws.com"}}})
	}
	return requests
}

// ofTarget handles services with JSON calls.
func (n Names) ofTarget(service, operation string, body []byte) ([]Request, error) {
	var call struct {
		TableName, IndexName, QueueURL string
		RequestItems                   map[string]any
		TransactItems                  []map[string]struct{ TableName string }
		StateMachineARN, ExecutionARN  string
		Cluster, Service, SecretID     string
		Services                       []string
		TaskDefinition, Task           string
		Tasks                          []string
	}
	if err := json.Unmarshal(body, &call); err != nil {
		return nil, fmt.Errorf("read a call of %s: %w", operation, err)
	}
	on := func(resource string) []Request {
		return []Request{{Action: service + ":" + operation, Resource: resource}}
	}
	switch {
	case service == "dynamodb" && len(call.TransactItems) > 0:
		return n.transaction(call.TransactItems)
	case service == "dynamodb" && len(call.RequestItems) > 0:
		var requests []Request
		for table := range call.RequestItems {
			requests = append(requests, on(n.table(table))...)
		}
		return requests, nil
	case service == "dynamodb" && call.IndexName != "":
		return on(n.table(call.TableName) + "/index/" + call.IndexName), nil
	case service == "dynamodb" && call.TableName != "":
		return on(n.table(call.TableName)), nil
	case service == "sqs" && call.QueueURL != "":
		operation = strings.TrimSuffix(operation, "Batch") // a batch call needs the same permission
		return on(n.ARN("sqs", n.name(call.QueueURL[strings.LastIndex(call.QueueURL, "/")+1:]))), nil
	case service == "states" && call.StateMachineARN != "":
		return on(n.ARN("states", "stateMachine:"+n.name(last(call.StateMachineARN)))), nil
	case service == "states" && call.ExecutionARN != "":
		parts := strings.Split(call.ExecutionARN, ":")
		machine := n.name(parts[max(len(parts)-2, 0)])
		return on(n.ARN("states", "execution:"+machine+":"+last(call.ExecutionARN))), nil
	case service == "states" && strings.HasPrefix(operation, "SendTask"):
		// Only AWS knows which state machine a token belongs to. The deployment has only one.
		return on(n.ARN("states", "stateMachine:"+n.name("state machine of a token"))), nil
	case service == "ecs" && (call.TaskDefinition != "" || len(call.Tasks) > 0):
		return n.ofTasks(operation, call.Cluster, call.TaskDefinition, call.Tasks), nil
	case service == "ecs" && call.Task != "":
		return on(call.Task), nil
	case service == "ecs" && call.Service != "":
		return on(n.ARN("ecs", "service/"+n.name(call.Cluster)+"/"+n.name(call.Service))), nil
	case service == "ecs" && len(call.Services) > 0:
		var requests []Request
		for _, name := range call.Services {
			requests = append(requests, on(n.ARN("ecs", "service/"+n.name(call.Cluster)+"/"+n.name(name)))...)
		}
		return requests, nil
	case service == "secretsmanager" && call.SecretID != "":
		name := regexp.MustCompile(`-[A-Za-z0-9]{6}$`).ReplaceAllString(n.name(last(call.SecretID)), secretSuffix)
		return on(n.ARN("secretsmanager", "secret:"+name)), nil
	}
	return nil, fmt.Errorf("%s:%s has no known resource: %.200s", service, operation, body)
}

func last(arn string) string { return arn[strings.LastIndex(arn, ":")+1:] }

func (n Names) table(name string) string { return n.ARN("dynamodb", "table/"+n.name(name)) }

// transaction returns the action of each item in a transaction. The transaction itself has no action.
func (n Names) transaction(items []map[string]struct{ TableName string }) ([]Request, error) {
	actions := map[string]string{"Put": "PutItem", "Update": "UpdateItem", "Delete": "DeleteItem",
		"ConditionCheck": "ConditionCheckItem", "Get": "GetItem"}
	var requests []Request
	for _, item := range items {
		for part, of := range item {
			action, known := actions[part]
			if !known {
				return nil, fmt.Errorf("%s in a transaction has no known action", part)
			}
			requests = append(requests, Request{Action: "dynamodb:" + action, Resource: n.table(of.TableName)})
		}
	}
	return requests, nil
}

// invoked is the path prefix of a function invocation. The function's name or ARN follows.
const invoked = "/2015-03-31/functions/"

func (n Names) ofLambda(r *http.Request) ([]Request, error) {
	name, what, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, invoked), "/")
	if !strings.HasPrefix(r.URL.Path, invoked) || what != "invocations" || r.Method != http.MethodPost {
		return nil, fmt.Errorf("%s %s of lambda has no known action", r.Method, r.URL.Path)
	}
	return []Request{{Action: "lambda:InvokeFunction", Resource: n.ARN("lambda", "function:"+n.name(last(name)))}}, nil
}

// plain reports whether an S3 query parameter has no influence on a call's action.
func plain(parameter string) bool {
	return parameter == "x-id" || strings.HasPrefix(strings.ToLower(parameter), "x-amz-") ||
		strings.HasPrefix(parameter, "response-")
}

func (n Names) ofS3(r *http.Request) ([]Request, error) {
	bucket, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	parameters := r.URL.Query()
	var special []string
	for parameter := range parameters {
		if !plain(parameter) {
			special = append(special, parameter)
		}
	}
	slices.Sort(special)
	action, known := s3Actions[strings.TrimSpace(r.Method+" "+strings.Join(special, " "))]
	if key == "" {
		lists := r.Method == http.MethodGet && parameters.Has("list-type")
		action, known = "s3:ListBucket", lists || r.Method == http.MethodHead && len(special) == 0
	}
	if bucket == "" || !known {
		return nil, fmt.Errorf("%s %s?%s of s3 has no known action", r.Method, r.URL.Path, r.URL.RawQuery)
	}
	resource := n.ARN("s3", n.name(bucket))
	if key != "" {
		resource += "/" + key
	}
	requests := []Request{{Action: action, Resource: resource}}
	if source := r.Header.Get("X-Amz-Copy-Source"); source != "" {
		decoded, err := url.PathUnescape(strings.TrimPrefix(source, "/"))
		if err != nil {
			return nil, fmt.Errorf("read the source of a copy: %w", err)
		}
		from, key, _ := strings.Cut(decoded, "/")
		requests = append(requests, Request{Action: "s3:GetObject", Resource: n.ARN("s3", n.name(from)) + "/" + key})
	}
	return requests, nil
}

// s3Actions maps methods and query parameters to actions on an object.
var s3Actions = map[string]string{
	"GET": "s3:GetObject", "HEAD": "s3:GetObject", "PUT": "s3:PutObject", "DELETE": "s3:DeleteObject",
	"GET partNumber": "s3:GetObject", "HEAD partNumber": "s3:GetObject",
	"POST uploads": "s3:PutObject", "PUT partNumber uploadId": "s3:PutObject", "POST uploadId": "s3:PutObject",
	"DELETE uploadId": "s3:AbortMultipartUpload", "GET uploadId": "s3:ListMultipartUploadParts",
}

// ToReportMissing returns the additional request that must be allowed before S3 reports a missing object. If it
// is not allowed, S3 rejects the call. ok is false if the call does not report a missing object.
func (n Names) ToReportMissing(r *http.Request, status int) (list Request, ok bool) {
	_, service := Caller(r)
	bucket, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	if service != "s3" || !reads || status != http.StatusNotFound {
		return Request{}, false
	}
	return Request{Action: "s3:ListBucket", Resource: n.ARN("s3", n.name(bucket)),
		Context: map[string][]string{"aws:SecureTransport": {"true"}, "s3:TlsVersion": {"1.3"}}}, true
}
