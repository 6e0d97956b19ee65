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
	"cutroom/shared/testkit/conformance"
)

// handedOver is a dispatcher that only records its jobs. It returns err if err is set.
type handedOver struct {
	mu   sync.Mutex
	jobs []job.Job
	open []dynamo.OpenEntry
	err  error
}

func (h *handedOver) Dispatch(_ context.Context, j job.Job, open dynamo.OpenEntry) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.jobs, h.open = append(h.jobs, j), append(h.open, open)
	return h.err
}

// counted reports the number of open jobs' records as the queue length.
type counted struct {
	client *dynamodb.Client
	table  string
}

func (c counted) Length(ctx context.Context, lane job.Lane) (int, error) {
	waiting, leased, err := c.Depth(ctx, lane)
	return waiting + leased, err
}

func (c counted) Depth(ctx context.Context, lane job.Lane) (waiting, leased int, err error) {
	waiting, err = c.records(ctx, lane, "attribute_not_exists(started_at)")
	if err == nil {
		leased, err = c.records(ctx, lane, "attribute_exists(started_at)")
	}
	return waiting, leased, err
}

func (c counted) records(ctx context.Context, lane job.Lane, which string) (int, error) {
	found, err := c.client.Scan(ctx, &dynamodb.ScanInput{
		TableName: &c.table, ConsistentRead: aws.Bool(true), Select: types.SelectCount,
		FilterExpression:         aws.String("#lane = :lane AND #status IN (:pending, :processing) AND " + which),
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

func newJobs(t *testing.T, cloud *awstest.Cloud, dispatcher dynamo.Dispatcher) (*dynamo.Jobs, counted) {
	t.Helper()
	client := dynamo.NewClient(cloud.Config())
	count := counted{client, cloud.MakeTable(t, "jobs")}
	runs := dynamo.NewRuns(client, count.table).CountIn(dynamo.NewUsage(client, cloud.MakeTable(t, "usage")))
	return dynamo.NewJobs(runs, dispatcher, count, time.Now), count
}

func TestJobsConform(t *testing.T) {
	cloud := local.Cloud(t)
	jobtest.Run(t, func(t *testing.T) jobtest.Harness {
		jobs, records := newJobs(t, cloud, &handedOver{})
		counts := dynamo.NewUsage(records.client, cloud.MakeTable(t, "usage"))
		budgets := dynamo.NewBudgets(records.client, cloud.MakeTable(t, "usage"), &machine{}, rand.Text)
		jobs.CountIn(counts).HoldIn(budgets)
		return jobtest.Harness{
			Store: jobs, Runs: jobs, Usage: counts, Budgets: budgets, Queues: jobs,
			Estimates: dynamo.NewEstimates(records.client, records.table),
		}
	})
}

// A job that an earlier version accepted is started the way that version started it.
func TestStartLeavesIndexUnchanged(t *testing.T) {
	cloud, ctx := local.Cloud(t), t.Context()
	jobs, records := newJobs(t, cloud, &handedOver{})
	for id, want := range map[string]job.Status{"job_new": job.Pending, "job_old": job.Processing} {
		key := map[string]types.AttributeValue{
			"id": &types.AttributeValueMemberS{Value: id}, "part": &types.AttributeValueMemberS{Value: dynamo.RecordPart},
		}
		conformance.OK(t, jobs.Accept(ctx, newJob(id), 0))
		if id == "job_old" {
			_, err := records.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
				TableName: &records.table, Key: key, UpdateExpression: aws.String("REMOVE open_status"),
			})
			conformance.OK(t, err)
		}
		_, err := jobs.Start(ctx, id, "n1", time.Now())
		conformance.OK(t, err)
		found, err := records.client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &records.table, Key: key})
		conformance.OK(t, err)
		conformance.Same(t, "the status in the index", found.Item["status"],
			types.AttributeValue(&types.AttributeValueMemberS{Value: string(want)}))
		j, err := jobs.Get(ctx, id)
		conformance.OK(t, err)
		conformance.Same(t, "the status of the job", j.Status, job.Processing)
	}
}
