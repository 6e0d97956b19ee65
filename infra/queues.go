package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/jsii-runtime-go"
)

// lane is a queue of jobs, and what takes the messages that it gives up on.
type lane struct{ queue, dead awssqs.IQueue }

// maxReceives is after how many receives a message is given up on. It is above
// job.MaxRuns, as a message is received also by workers that are about to end.
const maxReceives = 10

// newLanes makes the queues of the lanes. Work on one never waits for another's.
// They are standard queues with the account as message group, which SQS serves
// fairly.
func (s *stack) newLanes() map[string]lane {
	lanes := map[string]lane{}
	for _, name := range []string{"video", "image"} {
		dead := awssqs.NewQueue(s.Stack, jsii.String(title(name)+"DeadLetters"), &awssqs.QueueProps{
			QueueName:       jsii.String(s.name(name + "-dead-letters")),
			Encryption:      awssqs.QueueEncryption_SQS_MANAGED,
			EnforceSSL:      jsii.Bool(true),
			RetentionPeriod: awscdk.Duration_Days(jsii.Number(14)),
			// The reaper has a minute, six times of which Lambda asks for.
			VisibilityTimeout: awscdk.Duration_Minutes(jsii.Number(6)),
		})
		queue := awssqs.NewQueue(s.Stack, jsii.String(title(name)+"Queue"), &awssqs.QueueProps{
			QueueName:  jsii.String(s.name(name)),
			Encryption: awssqs.QueueEncryption_SQS_MANAGED,
			EnforceSSL: jsii.Bool(true),
			// A message outlives its job by far.
			RetentionPeriod: awscdk.Duration_Hours(jsii.Number(1)),
			// The worker extends it; a dead worker's message comes back within it.
			VisibilityTimeout:      awscdk.Duration_Minutes(jsii.Number(1)),
			ReceiveMessageWaitTime: awscdk.Duration_Seconds(jsii.Number(20)),
			DeadLetterQueue:        &awssqs.DeadLetterQueue{MaxReceiveCount: jsii.Number(maxReceives), Queue: dead},
		})
		lanes[name] = lane{queue, dead}
	}
	return lanes
}
