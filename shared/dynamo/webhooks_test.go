package dynamo_test

import (
	"testing"
	"time"

	"cutroom/shared/awstest"
	"cutroom/shared/dynamo"
	"cutroom/shared/webhook/webhooktest"
)

func TestWebhooks(t *testing.T) {
	t.Parallel()
	cloud := awstest.Start(t)
	webhooktest.Run(t, func(t *testing.T) webhooktest.Harness {
		client, table := dynamo.NewClient(cloud.Config()), cloud.MakeTable(t, "jobs")
		return webhooktest.Harness{
			Store: dynamo.NewWebhooks(client, table),
			Jobs:  dynamo.NewJobs(dynamo.NewRuns(client, table), &handedOver{}, nil, time.Now),
		}
	})
}
