package dynamo_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/domain/job"
	"cutroom/shared/testkit/conformance"
)

// partitions returns the partitions of the index that have jobs, with their ids.
func (c counted) partitions(t *testing.T) map[string][]string {
	t.Helper()
	found, err := c.client.Scan(t.Context(), &dynamodb.ScanInput{TableName: &c.table})
	conformance.OK(t, err)
	all := map[string][]string{}
	for _, i := range found.Items {
		if partition, there := i["account"].(*types.AttributeValueMemberS); there {
			all[partition.Value] = append(all[partition.Value], i["id"].(*types.AttributeValueMemberS).Value)
		}
	}
	return all
}

// An account with a high limit is spread over partitions of the index an hour after it had
// the first job, when no earlier version runs any more. Its jobs of before stay where they
// are, and lists have all of them, in order and page by page, also those of a process that did
// not know.
func TestAccountIsSpread(t *testing.T) {
	jobs, records := newJobs(t, local.Cloud(t), &handedOver{})
	now, ctx := time.Now(), t.Context()
	at := func() time.Time { return now }
	writer := dynamo.NewJobs(jobs.Runs, &handedOver{}, records, at)
	reader := dynamo.NewJobs(jobs.Runs, &handedOver{}, records, at).ReadLittle()
	var want []string
	accept := func(n, limit int) {
		t.Helper()
		for range n {
			id := fmt.Sprintf("job_%03d", len(want))
			conformance.OK(t, writer.Accept(ctx, newJob(id), limit))
			want = slices.Insert(want, 0, id)
		}
	}
	listed := func() {
		t.Helper()
		for _, size := range []int{1, 4, 100} {
			var got []string
			for after := ""; ; {
				page, next, err := reader.List(ctx, "acme", job.Filter{}, after, size, now)
				conformance.OK(t, err)
				for _, j := range page {
					conformance.Same(t, "the account", j.Account, "acme")
					got = append(got, j.ID)
				}
				if after = next; next == "" {
					break
				}
			}
			conformance.Same(t, fmt.Sprint("pages of ", size), got, want)
		}
	}

	accept(1, 500)
	listed()
	now = now.Add(time.Hour)
	accept(3, 501)
	listed()
	now = now.Add(time.Hour - time.Second)
	accept(1, 501)
	listed()
	conformance.Same(t, "the partitions before", len(records.partitions(t)), 1)

	now = now.Add(time.Second)
	accept(24, 501)
	listed()
	spread := records.partitions(t)
	if len(spread) < 4 || len(spread["acme"]) < 5 {
		t.Errorf("the partitions are %v", spread)
	}

	accept(2, 500)
	listed()
	conformance.Same(t, "those under a lower limit", len(records.partitions(t)["acme"]), len(spread["acme"])+2)
}

// The account of a job that is in another partition is its own for webhooks too.
func TestEventOfSpreadJob(t *testing.T) {
	image := map[string]events.DynamoDBAttributeValue{}
	for name, value := range map[string]string{
		"id": "job_1", "part": dynamo.RecordPart, "status": string(job.Completed), "webhook": "https://hooks.example",
		"account": "acme#3", "owner": "acme", "completed_at": "2026-11-23T17:00:00.000Z",
	} {
		image[name] = events.NewStringAttribute(value)
	}
	first, there := dynamo.EndedWithWebhook(image)
	if !there || first.Account != "acme" {
		t.Errorf("the attempt is %+v, %v", first, there)
	}
}

// Of an account with a high limit a part of its open jobs is counted, for an estimate that is not
// too low; all of them are where the queue says otherwise, or whoever asks wants it.
func TestBacklogOfALargeAccount(t *testing.T) {
	jobs, _ := newJobs(t, local.Cloud(t), &handedOver{})
	const limit, n = 2500, 60
	queue := &queueOf{length: 10_000}
	large := dynamo.NewJobs(jobs.Runs, &handedOver{}, queue, time.Now)
	for i := range n {
		conformance.OK(t, large.Accept(t.Context(), newJob(fmt.Sprintf("job_%03d", i)), limit))
	}
	backlog := func() job.Backlog {
		t.Helper()
		got, err := large.Backlog(t.Context(), job.VideoLane, "acme", limit)
		conformance.OK(t, err)
		return got
	}
	for range 5 {
		rough := backlog()
		if rough.Recount == nil || rough.AccountJobs < n || rough.AccountJobs > 4*n || rough.Jobs != queue.length {
			t.Errorf("the estimate is %+v", rough)
		}
		exact, err := rough.Recount(t.Context())
		conformance.OK(t, err)
		compared, err := exact.Recount(t.Context())
		conformance.OK(t, err)
		if exact.AccountJobs != n || compared.AccountJobs != n || compared.Recount != nil {
			t.Errorf("counted are %+v, and compared %+v", exact, compared)
		}
	}
	queue.length = 5
	if exact := backlog(); exact.AccountJobs != n || exact.Jobs != n || exact.Recount != nil {
		t.Errorf("where the queue has less, counted are %+v", exact)
	}
}

// queueOf is queues of a length.
type queueOf struct{ length int }

func (q *queueOf) Length(context.Context, job.Lane) (int, error) { return q.length, nil }

func (q *queueOf) Depth(context.Context, job.Lane) (int, int, error) { return q.length, 0, nil }
