package sqsqueue_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"cutroom/shared/adapter/sqsqueue"
	"cutroom/shared/domain/webhook"
	"cutroom/shared/testkit/awstest"
)

// An attempt may be due later than SQS's maximum delay of 15 minutes allows.
func TestAttemptsAreReceivedWhenDue(t *testing.T) {
	t.Parallel()
	cloud := local.Cloud(t)
	proxy := cloud.Proxy(t, 1, awstest.Faults{})
	queue := cloud.MakeQueue(t, 10)
	turns := sqsqueue.NewScheduledAttempts(proxy.Config(), queue.URL)
	now := time.Now().UTC().Truncate(time.Millisecond)
	due := webhook.First("job_1", "acme", now.Add(-time.Minute))
	if err := turns.Send(t.Context(), due, now); err != nil {
		t.Fatal(err)
	}
	if calls, documented := awstest.CallList(proxy.Calls()), awstest.Documented(t, "Turns")["Send"]; calls != documented {
		t.Errorf("sending makes the calls %q, but documented are %q", calls, documented)
	}
	for _, wait := range []time.Duration{time.Minute, 6 * time.Hour} {
		if err := turns.Send(t.Context(),
			webhook.ScheduledAttempt{Event: "job_2", Account: "acme", Number: 2, At: now.Add(wait)}, now); err != nil {
			t.Fatalf("a wait of %v: %v", wait, err)
		}
	}
	client := awssqs.NewFromConfig(cloud.Config())
	received, err := client.ReceiveMessage(t.Context(),
		&awssqs.ReceiveMessageInput{QueueUrl: &queue.URL, MaxNumberOfMessages: 10})
	if err != nil || len(received.Messages) != 1 {
		t.Fatalf("received %+v, %v", received, err)
	}
	if got, err := sqsqueue.ReadScheduledAttempt(*received.Messages[0].Body); err != nil || got != due {
		t.Errorf("%+v was received as %+v, %v", due, got, err)
	}
	name := types.QueueAttributeNameApproximateNumberOfMessagesDelayed
	found, err := client.GetQueueAttributes(t.Context(),
		&awssqs.GetQueueAttributesInput{QueueUrl: aws.String(queue.URL), AttributeNames: []types.QueueAttributeName{name}})
	if err != nil || found.Attributes[string(name)] != "2" {
		t.Errorf("delayed messages: %v, %v", found.Attributes, err)
	}
}

func TestForeignMessagesAreNotAttempts(t *testing.T) {
	for _, body := range []string{"", "{}", `{"job":"job_1"}`, `{"attempt":1}`, `{"job":"job_1","attempt":0}`,
		`{"job":"job_1","attempt":1,"at":"soon"}`} {
		if turn, err := sqsqueue.ReadScheduledAttempt(body); err == nil {
			t.Errorf("%q was decoded as %+v", body, turn)
		}
	}
}
