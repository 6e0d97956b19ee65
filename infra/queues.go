package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/jsii-runtime-go"
)

type lane struct{ queue, dead awssqs.IQueue }

// maxReceives is the number of receives after which a message goes to the dead-letter queue. It is
// above job.MaxRuns, because workers that are about to stop also receive messages.
const maxReceives = 10

// newLanes creates one queue per lane, so that one lane's jobs never wait for another's. They are
// standard queues with the account as message group, and SQS serves the groups fairly.
func (s *stack) newLanes() map[string]lane {
	lanes := map[string]lane{}
	for _, name := range []string{"video", "image"} {
		dead := awssqs.NewQueue(s.Stack, jsii.String(title(name)+"DeadLetters"), &awssqs.QueueProps{
			QueueName:       jsii.String(s.name(name + "-dead-letters")),
			Encryption:      awssqs.QueueEncryption_SQS_MANAGED,
			EnforceSSL:      jsii.Bool(true),
			RetentionPeriod: awscdk.Duration_Days(jsii.Number(14)),
			// Lambda recommends six times the reaper's timeout, which is one minute.
			VisibilityTimeout: awscdk.Duration_Minutes(jsii.Number(6)),
		})
		queue := awssqs.NewQueue(s.Stack, jsii.String(title(name)+"Queue"), &awssqs.QueueProps{
			QueueName:  jsii.String(s.name(name)),
			Encryption: awssqs.QueueEncryption_SQS_MANAGED,
			EnforceSSL: jsii.Bool(true),
			// A message is kept far longer than its job takes.
			RetentionPeriod: awscdk.Duration_Hours(jsii.Number(1)),
			// The worker keeps extending this timeout. If the worker dies, the message becomes visible again.
			VisibilityTimeout:      awscdk.Duration_Minutes(jsii.Number(1)),
			ReceiveMessageWaitTime: awscdk.Duration_Seconds(jsii.Number(20)),
			DeadLetterQueue:        &awssqs.DeadLetterQueue{MaxReceiveCount: jsii.Number(maxReceives), Queue: dead},
		})
		lanes[name] = lane{queue, dead}
	}
	return lanes
}
