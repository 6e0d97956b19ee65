package iamtest_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"cutroom/shared/testkit/iamtest"
)

// Each call asks for what the Service Authorization Reference lists for its operation.
func TestRequests(t *testing.T) {
	const blob = "s3:GetObject arn:aws:s3:::B/k/1"
	region := "eu-central-1:" + account + ":"
	table, queue := "arn:aws:dynamodb:"+region+"table/T", "arn:aws:sqs:"+region+"Q"
	for _, c := range []struct {
		service, target, line, body, copied string
		want                                string // "" is of no known action
	}{
		{"s3", "", "GET /b/k/1", "", "", blob},
		{"s3", "", "HEAD /b/k/1", "", "", blob},
		{"s3", "", "GET /b/k/1?x-id=GetObject&response-content-type=a", "", "", blob},
		{"s3", "", "PUT /b/k/1?x-id=PutObject", "", "", "s3:PutObject arn:aws:s3:::B/k/1"},
		{"s3", "", "PUT /b/k/1", "", "b/k/2", "s3:PutObject arn:aws:s3:::B/k/1, s3:GetObject arn:aws:s3:::B/k/2"},
		{"s3", "", "PUT /b/k/1", "", "/b/k%2F2", "s3:PutObject arn:aws:s3:::B/k/1, s3:GetObject arn:aws:s3:::B/k/2"},
		{"s3", "", "DELETE /b/k/1", "", "", "s3:DeleteObject arn:aws:s3:::B/k/1"},
		{"s3", "", "POST /b/k/1?uploads=", "", "", "s3:PutObject arn:aws:s3:::B/k/1"},
		{"s3", "", "PUT /b/k/1?partNumber=1&uploadId=u", "", "", "s3:PutObject arn:aws:s3:::B/k/1"},
		{"s3", "", "POST /b/k/1?uploadId=u", "", "", "s3:PutObject arn:aws:s3:::B/k/1"},
		{"s3", "", "DELETE /b/k/1?uploadId=u", "", "", "s3:AbortMultipartUpload arn:aws:s3:::B/k/1"},
		{"s3", "", "GET /b/k/1?uploadId=u", "", "", "s3:ListMultipartUploadParts arn:aws:s3:::B/k/1"},
		{"s3", "", "GET /b?list-type=2&prefix=k", "", "", "s3:ListBucket arn:aws:s3:::B"},
		{"s3", "", "HEAD /b", "", "", "s3:ListBucket arn:aws:s3:::B"},
		{"s3", "", "GET /b/k/1?tagging=", "", "", ""},
		{"s3", "", "GET /b/k/1?versionId=1", "", "", ""},
		{"s3", "", "GET /b?policy=", "", "", ""},
		{"s3", "", "POST /b?delete=", "", "", ""},
		{"s3", "", "GET /", "", "", ""},
		{"dynamodb", "DynamoDB_20120810.GetItem", "POST /", `{"TableName": "t"}`, "", "dynamodb:GetItem " + table},
		{"dynamodb", "DynamoDB_20120810.Query", "POST /", `{"TableName": "t", "IndexName": "i"}`, "",
			"dynamodb:Query " + table + "/index/i"},
		{"dynamodb", "DynamoDB_20120810.BatchGetItem", "POST /", `{"RequestItems": {"t": {}}}`, "",
			"dynamodb:BatchGetItem " + table},
		{"dynamodb", "DynamoDB_20120810.TransactWriteItems", "POST /",
			`{"TransactItems": [{"Put": {"TableName": "t"}}, {"ConditionCheck": {"TableName": "t"}}, {"Delete": {"TableName": "t"}}]}`,
			"", "dynamodb:PutItem " + table + ", dynamodb:ConditionCheckItem " + table + ", dynamodb:DeleteItem " + table},
		{"dynamodb", "DynamoDB_20120810.TransactWriteItems", "POST /", `{"TransactItems": [{"Else": {"TableName": "t"}}]}`, "", ""},
		{"dynamodb", "DynamoDB_20120810.ExecuteStatement", "POST /", `{"Statement": "SELECT"}`, "", ""},
		{"dynamodb", "DynamoDB_20120810.GetItem", "POST /", `{`, "", ""},
		{"sqs", "AmazonSQS.SendMessage", "POST /", `{"QueueUrl": "http://sqs/1/q"}`, "", "sqs:SendMessage " + queue},
		{"sqs", "AmazonSQS.DeleteMessageBatch", "POST /", `{"QueueUrl": "http://sqs/1/q"}`, "", "sqs:DeleteMessage " + queue},
		{"sqs", "AmazonSQS.ListQueues", "POST /", `{}`, "", ""},
		{"sqs", "", "POST /?Action=SendMessage", "", "", ""},
		{"states", "AWSStepFunctions.StartExecution", "POST /", `{"stateMachineArn": "arn:aws:states:r:1:stateMachine:m"}`, "",
			"states:StartExecution arn:aws:states:" + region + "stateMachine:M"},
		{"states", "AWSStepFunctions.StopExecution", "POST /", `{"executionArn": "arn:aws:states:r:1:execution:m:job"}`, "",
			"states:StopExecution arn:aws:states:" + region + "execution:M:job"},
		{"states", "AWSStepFunctions.SendTaskSuccess", "POST /", `{"taskToken": "x"}`, "",
			"states:SendTaskSuccess arn:aws:states:" + region + "stateMachine:STATE MACHINE OF A TOKEN"},
		{"ecs", "AmazonEC2ContainerServiceV20141113.UpdateService", "POST /", `{"cluster": "c", "service": "s"}`, "",
			"ecs:UpdateService arn:aws:ecs:" + region + "service/C/S"},
		{"ecs", "AmazonEC2ContainerServiceV20141113.DescribeServices", "POST /", `{"cluster": "c", "services": ["s"]}`, "",
			"ecs:DescribeServices arn:aws:ecs:" + region + "service/C/S"},
		{"ecs", "AmazonEC2ContainerServiceV20141113.RunTask", "POST /", `{"cluster": "c", "taskDefinition": "definition:7"}`,
			"", "ecs:RunTask definition:7, iam:PassRole arn:aws:iam::" + account + ":role/TASK ROLE, " +
				"iam:PassRole arn:aws:iam::" + account + ":role/EXECUTION ROLE"},
		{"ecs", "AmazonEC2ContainerServiceV20141113.DescribeTasks", "POST /", `{"cluster": "c", "tasks": ["task/c/1"]}`, "",
			"ecs:DescribeTasks task/c/1"},
		{"ecs", "AmazonEC2ContainerServiceV20141113.StopTask", "POST /", `{"cluster": "c", "task": "task/c/1"}`, "",
			"ecs:StopTask task/c/1"},
		{"cloudformation", "", "POST /", "Action=DescribeStacks&StackName=stack%2Fs%2F1&Version=2010-05-15", "",
			"cloudformation:DescribeStacks stack/s/1"},
		{"cloudformation", "", "POST /", "Action=ListStacks&Version=2010-05-15", "", ""},
		{"secretsmanager", "secretsmanager.GetSecretValue", "POST /", `{"SecretId": "arn:aws:secretsmanager:r:1:secret:s-1x2y3Z"}`, "",
			"secretsmanager:GetSecretValue arn:aws:secretsmanager:" + region + "secret:S-AbCdEf"},
		{"lambda", "", "POST /2015-03-31/functions/f/invocations", "", "",
			"lambda:InvokeFunction arn:aws:lambda:" + region + "function:F"},
		{"lambda", "", "POST /2015-03-31/functions/arn:aws:lambda:r:1:function:f/invocations", "", "",
			"lambda:InvokeFunction arn:aws:lambda:" + region + "function:F"},
		{"lambda", "", "GET /2015-03-31/functions/f", "", "", ""},
		{"kms", "TrentService.Decrypt", "POST /", `{}`, "", ""},
	} {
		method, path, _ := strings.Cut(c.line, " ")
		r := httptest.NewRequest(method, path, nil)
		sign(r, c.service)
		if c.target != "" {
			r.Header.Set("X-Amz-Target", c.target)
		}
		if c.copied != "" {
			r.Header.Set("X-Amz-Copy-Source", c.copied)
		}
		requests, err := iamtest.Names{Place: place, Rename: strings.ToUpper}.Requests(r, []byte(c.body))
		var got []string
		for _, request := range requests {
			got = append(got, request.Action+" "+request.Resource)
		}
		if strings.Join(got, ", ") != c.want || (err != nil) != (c.want == "") {
			t.Errorf("%s %s asks for %q, want %q (%v)", c.target, c.line, got, c.want, err)
		}
	}
}

func sign(r *http.Request, service string) {
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=FilesRole/20260101/eu-central-1/"+service+
		"/aws4_request, SignedHeaders=host, Signature=0")
}

// The signer of a URL is its caller.
func TestCaller(t *testing.T) {
	signed := httptest.NewRequest(http.MethodGet, "/b/k?X-Amz-Credential=FilesRole%2F20260101%2Feu-central-1%2Fs3%2Faws4_request", nil)
	header := httptest.NewRequest(http.MethodGet, "/b/k", nil)
	sign(header, "s3")
	for _, r := range []*http.Request{signed, header} {
		if key, service := iamtest.Caller(r); key != "FilesRole" || service != "s3" {
			t.Errorf("the caller is %q, of %q", key, service)
		}
	}
	if key, service := iamtest.Caller(httptest.NewRequest(http.MethodGet, "/b/k", nil)); key != "" || service != "" {
		t.Errorf("nobody signed, and the caller is %q, of %q", key, service)
	}
}

// Of an object that is not there S3 tells those alone who may list the bucket.
func TestToTellMissing(t *testing.T) {
	for _, c := range []struct {
		method string
		status int
		want   bool
	}{
		{http.MethodGet, 404, true}, {http.MethodHead, 404, true}, {http.MethodGet, 200, false}, {http.MethodPut, 404, false},
	} {
		r := httptest.NewRequest(c.method, "/b/k", nil)
		sign(r, "s3")
		list, ok := iamtest.Names{Place: place}.ToTellMissing(r, c.status)
		if ok != c.want || ok && (list.Action != "s3:ListBucket" || list.Resource != "arn:aws:s3:::b") {
			t.Errorf("%+v: %+v %v", c, list, ok)
		}
	}
}
