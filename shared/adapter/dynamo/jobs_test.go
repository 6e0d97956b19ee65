package dynamo_test

import (
	"context"
	"crypto/rand"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/domain/job"
	"cutroom/shared/domain/job/jobtest"
	"cutroom/shared/testkit/awstest"
)

// handedOver is a dispatcher that records its jobs, because these tests are about records,
// and returns an error if it has one.
type handedOver struct {
	mu   sync.Mutex
	jobs []job.Job
	err  error
}

func (h *handedOver) Dispatch(_ context.Context, j job.Job) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.jobs = append(h.jobs, j)
	return h.err
}

// counted returns the number of records of open jobs as the length of a queue, because
// these tests have no queue.
type counted struct {
	client *dynamodb.Client
	table  string
}

func (c counted) Length(ctx context.Context, lane job.Lane) (int, error) {
	found, err := c.client.Scan(ctx, &dynamodb.ScanInput{
		TableName: &c.table, ConsistentRead: aws.Bool(true), Select: types.SelectCount,
		FilterExpression:         aws.String("#lane = :lane AND #status IN (:pending, :processing)"),
		ExpressionAttributeNames: map[string]string{"#lane": "lane", "#status": "status"},
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":lane":       &types.AttributeValueMemberS{Value: string(lane)},
			":pending":    &types.AttributeValueMemberS{Value: string(job.Pending)},
			":processing": &types.AttributeValueMemberS{Value: string(job.Processing)},
		},
	})
	if err != nil {
		return 0, err
	}
	return int(found.Count), nil
}

// newJobs returns the jobs of an empty table.
func newJobs(t *testing.T, cloud *awstest.Cloud, dispatcher dynamo.Dispatcher) (*dynamo.Jobs, counted) {
	t.Helper()
	client := dynamo.NewClient(cloud.Config())
	count := counted{client, cloud.MakeTable(t, "jobs")}
	runs := dynamo.NewRuns(client, count.table).CountIn(dynamo.NewUsage(client, cloud.MakeTable(t, "usage")))
	return dynamo.NewJobs(runs, dispatcher, count, time.Now), count
}

func TestJobs(t *testing.T) {
	cloud := local.Cloud(t)
	jobtest.Run(t, func(t *testing.T) jobtest.Harness {
		jobs, records := newJobs(t, cloud, &handedOver{})
		counts := dynamo.NewUsage(records.client, cloud.MakeTable(t, "usage"))
		budgets := dynamo.NewBudgets(records.client, cloud.MakeTable(t, "usage"), &machine{}, rand.Text)
		jobs.CountIn(counts).HoldIn(budgets)
		return jobtest.Harness{
			Store: jobs, Runs: jobs, Usage: counts, Budgets: budgets,
			Estimates: dynamo.NewEstimates(records.client, records.table),
		}
	})
}
