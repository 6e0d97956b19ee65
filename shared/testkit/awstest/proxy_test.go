package awstest_test

import (
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"

	"cutroom/shared/testkit/awstest"
)

func TestProxyCountsCalls(t *testing.T) {
	cloud := awstest.Start(t)
	queue := cloud.MakeQueue(t, 10)
	proxy := cloud.Proxy(t, 1, awstest.Faults{})
	client := sqs.NewFromConfig(proxy.Config())
	for range 2 {
		if _, err := client.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &queue.URL,
			MessageBody: aws.String("a")}); err != nil {
			t.Fatal(err)
		}
	}
	bucket := cloud.MakeBucket(t)
	if _, err := s3.NewFromConfig(proxy.Config(), func(o *s3.Options) { o.UsePathStyle = true }).
		ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: &bucket}); err != nil {
		t.Fatal(err)
	}
	calls := proxy.Calls()
	if calls["SQS.SendMessage"] != 2 || calls["S3.GET"] != 1 || len(calls) != 2 {
		t.Errorf("counted %v", calls)
	}
	if again := proxy.Calls(); len(again) != 0 {
		t.Errorf("counted %v anew", again)
	}
}

// What a client sees of each trouble, and whether the call had an effect.
func TestProxyMakesTrouble(t *testing.T) {
	cloud := awstest.Start(t)
	for _, c := range []struct {
		name   string
		faults awstest.Faults
		code   string // of the error; "-" for an error without one, "" for none
		effect bool
	}{
		{"throttled", awstest.Faults{Throttled: 1}, "ThrottlingException", false},
		{"failed", awstest.Faults{Failed: 1}, "InternalServerError", false},
		{"lost calls", awstest.Faults{LostCalls: 1}, "-", false},
		{"lost answers", awstest.Faults{LostAnswers: 1}, "-", true},
		{"slow", awstest.Faults{Slow: 1}, "", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			queue := cloud.MakeQueue(t, 10)
			proxy := cloud.Proxy(t, 1, c.faults)
			client := sqs.NewFromConfig(proxy.Config(), func(o *sqs.Options) {
				o.Retryer = retry.AddWithMaxAttempts(retry.NewStandard(), 1)
			})
			_, err := client.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &queue.URL, MessageBody: aws.String("a")})
			code := ""
			if err != nil {
				code = "-"
			}
			if known := smithy.APIError(nil); errors.As(err, &known) {
				code = known.ErrorCode()
			}
			if code != c.code {
				t.Errorf("the error is %v, want %s", err, c.code)
			}
			received, err := sqs.NewFromConfig(cloud.Config()).ReceiveMessage(t.Context(),
				&sqs.ReceiveMessageInput{QueueUrl: &queue.URL})
			if err != nil {
				t.Fatal(err)
			}
			if effect := len(received.Messages) == 1; effect != c.effect {
				t.Errorf("the call had an effect: %v, want %v", effect, c.effect)
			}
		})
	}
}
