package awstest_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dynamotypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"

	"cutroom/shared/testkit/awstest"
	"cutroom/shared/testkit/iamtest"
)

// guarded returns a guarded proxy, the configuration for a role's clients that call through it, and
// a counter of the forwarded calls.
func guarded(t *testing.T, role string) (*awstest.Proxy, aws.Config, *atomic.Int64) {
	t.Helper()
	reached := &atomic.Int64{}
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reached.Add(1)
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(service.Close)
	account, err := iamtest.NewAccount(awstest.Here, iamtest.Rights{Roles: map[string][]json.RawMessage{
		"Nothing": nil,
		"Reader": {json.RawMessage(`{"Version": "2012-10-17", "Statement": [
			{"Effect": "Allow", "Action": ["s3:GetObject", "s3:PutObject"], "Resource": "arn:aws:s3:::b/*"}]}`)},
		"Lister": {json.RawMessage(`{"Version": "2012-10-17", "Statement": [
			{"Effect": "Allow", "Action": ["s3:GetObject", "s3:ListBucket"], "Resource": ["arn:aws:s3:::b", "arn:aws:s3:::b/*"]}]}`)},
	}})
	if err != nil {
		t.Fatal(err)
	}
	proxy := awstest.NewProxy(t, service.URL, 1, awstest.Faults{})
	proxy.Guard(t, awstest.Guard{Account: account})
	config := proxy.Config()
	config.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: role, SecretAccessKey: "test"}, nil
	})
	return proxy, config, reached
}

// Every service rejects the call with its own error, and the call has no effect.
func TestGuardRejectsForbiddenCalls(t *testing.T) {
	proxy, config, reached := guarded(t, "Nothing")
	ctx, name := t.Context(), aws.String("b")
	blobs := s3.NewFromConfig(config, func(o *s3.Options) { o.UsePathStyle = true })
	for action, call := range map[string]func() error{
		"dynamodb:GetItem": func() error {
			_, err := dynamodb.NewFromConfig(config).GetItem(ctx, &dynamodb.GetItemInput{TableName: name,
				Key: map[string]dynamotypes.AttributeValue{"id": &dynamotypes.AttributeValueMemberS{Value: "1"}}})
			return err
		},
		"s3:GetObject": func() error {
			_, err := blobs.GetObject(ctx, &s3.GetObjectInput{Bucket: name, Key: name})
			return err
		},
		"sqs:SendMessage": func() error {
			_, err := sqs.NewFromConfig(config).SendMessage(ctx, &sqs.SendMessageInput{
				QueueUrl: aws.String("http://127.0.0.1/1/q"), MessageBody: name})
			return err
		},
		"states:StopExecution": func() error {
			_, err := sfn.NewFromConfig(config).StopExecution(ctx, &sfn.StopExecutionInput{
				ExecutionArn: aws.String("arn:aws:states:eu-central-1:000000000000:execution:m:e")})
			return err
		},
		"ecs:UpdateService": func() error {
			_, err := ecs.NewFromConfig(config).UpdateService(ctx, &ecs.UpdateServiceInput{Cluster: name, Service: name})
			return err
		},
		"secretsmanager:GetSecretValue": func() error {
			_, err := secretsmanager.NewFromConfig(config).GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: name})
			return err
		},
		"lambda:InvokeFunction": func() error {
			_, err := lambda.NewFromConfig(config).Invoke(ctx, &lambda.InvokeInput{FunctionName: name})
			return err
		},
	} {
		err := call()
		var known smithy.APIError
		if !errors.As(err, &known) || !strings.HasPrefix(known.ErrorCode(), "AccessDenied") ||
			!strings.Contains(known.ErrorMessage(), "role/Nothing is not authorized to perform: "+action+" on resource: arn:aws:") {
			t.Errorf("%s: the error is %v", action, err)
		}
		if rejected := proxy.Rejected(); len(rejected) != 1 || !strings.Contains(rejected[0], action) {
			t.Errorf("%s: rejected: %q", action, rejected)
		}
	}
	if n := reached.Load(); n != 0 {
		t.Errorf("%d calls passed", n)
	}
}

// S3 reports a missing object only to callers that may list the bucket. Other callers are rejected.
func TestGuardHidesMissingObjects(t *testing.T) {
	for role, want := range map[string]string{"Reader": "AccessDenied", "Lister": "NoSuchKey"} {
		proxy, config, _ := guarded(t, role)
		_, err := s3.NewFromConfig(config, func(o *s3.Options) { o.UsePathStyle = true }).
			GetObject(t.Context(), &s3.GetObjectInput{Bucket: aws.String("b"), Key: aws.String("k")})
		var known smithy.APIError
		if denied := errors.As(err, &known) && known.ErrorCode() == "AccessDenied"; denied != (want == "AccessDenied") {
			t.Errorf("%s: the error is %v, want %s", role, err, want)
		}
		if rejected := proxy.Rejected(); len(rejected) != map[string]int{"Reader": 1}[role] {
			t.Errorf("%s: rejected: %q", role, rejected)
		}
	}
}

// A call with a signed URL is attributed to the signer, an unsigned call is anonymous, and a call
// with an unknown action is rejected.
func TestGuardIdentifiesCallers(t *testing.T) {
	proxy, config, reached := guarded(t, "Reader")
	client := s3.NewFromConfig(config, func(o *s3.Options) { o.UsePathStyle = true })
	put, err := s3.NewPresignClient(client).PresignPutObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String("b"), Key: aws.String("k")})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		method, url string
		want        int
	}{
		{http.MethodPut, put.URL, http.StatusOK},
		{http.MethodDelete, put.URL, http.StatusForbidden},
		{http.MethodPut, strings.Replace(put.URL, "Reader", "Unknown", 1), http.StatusForbidden},
		{http.MethodPut, proxy.URL + "/b/k", http.StatusForbidden},
		{http.MethodPut, put.URL + "&tagging=", http.StatusForbidden},
	} {
		request, err := http.NewRequestWithContext(t.Context(), c.method, c.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != c.want {
			t.Errorf("%s %s: %d, want %d", c.method, c.url, response.StatusCode, c.want)
		}
	}
	if n := reached.Load(); n != 1 {
		t.Errorf("%d calls passed", n)
	}
	if rejected := proxy.Rejected(); len(rejected) != 4 {
		t.Errorf("rejected: %q", rejected)
	}
}
