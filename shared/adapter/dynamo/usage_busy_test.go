package dynamo_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
	"cutroom/shared/domain/usage"
	"cutroom/shared/testkit/conformance"
)

// usagePartitions returns in how many partitions of a table there is usage of a day.
func usagePartitions(t *testing.T, records *dynamodb.Client, table string, day usage.Day) int {
	t.Helper()
	found, err := records.Scan(t.Context(), &dynamodb.ScanInput{TableName: &table})
	conformance.OK(t, err)
	partitions := map[string]bool{}
	for _, i := range found.Items {
		if of, there := i["usage_day"].(*types.AttributeValueMemberS); there && of.Value == string(day) {
			partitions[i["id"].(*types.AttributeValueMemberS).Value] = true
		}
	}
	return len(partitions)
}

// The usage of a busy account is spread over more partitions two days after its first record,
// when no earlier version runs any more. What is added again counts once, whoever does it, and
// totals have all of it.
func TestUsageOfABusyAccount(t *testing.T) {
	cloud := local.Cloud(t)
	records, table := client(cloud), cloud.MakeTable(t, "usage")
	processes := []*dynamo.Usage{dynamo.NewUsage(records, table), dynamo.NewUsage(records, table)}
	const n = 40
	days := []usage.Day{"2026-02-27", "2026-02-28", "2026-03-01", "2026-03-02"}
	all := func(account string, day usage.Day, busy bool) (records []usage.Record) {
		for i := range n {
			records = append(records, usage.Record{
				ID: fmt.Sprint(account, day, i), Account: account, Key: "key", Model: "m", Day: day, Busy: busy,
				Counts: usage.Counts{Requests: 1},
			})
		}
		return records
	}
	for _, day := range days {
		for _, p := range processes {
			conformance.OK(t, p.Add(t.Context(), all("acme", day, true)))
		}
	}
	conformance.OK(t, processes[0].Add(t.Context(), all("rival", days[3], false)))
	for i, day := range days {
		if got := usagePartitions(t, records, table, day); i < 2 && got > 8 || i == 2 && got < 16 {
			t.Errorf("the usage of %s is in %d partitions", day, got)
		}
	}
	for account, days := range map[string][]usage.Day{"acme": days, "rival": days[3:]} {
		got, err := dynamo.NewUsage(records, table).Totals(t.Context(), account, days[0], days[len(days)-1])
		conformance.OK(t, err)
		var want []usage.Total
		for _, day := range days {
			want = append(want, usage.Total{Day: day, Model: "m", Key: "key", Counts: usage.Counts{Requests: n}})
		}
		conformance.Same(t, "the usage of "+account, got, want)
	}
}

// Jobs of an account with a high limit count in its partitions too, once when they are accepted
// and once when they complete, and not at all if they are withdrawn.
func TestUsageOfJobsOfABusyAccount(t *testing.T) {
	cloud := local.Cloud(t)
	records, table := client(cloud), cloud.MakeTable(t, "usage")
	counts := dynamo.NewUsage(records, table)
	today := usage.DayOf(newJob("job").CreatedAt)
	conformance.OK(t, counts.SpreadUsage(t.Context(), "acme", today))
	runs := dynamo.NewRuns(records, cloud.MakeTable(t, "jobs")).CountIn(counts)
	jobs := dynamo.NewJobs(runs, &handedOver{}, nil, time.Now)
	const n = 25
	for i := range n {
		id := fmt.Sprintf("job_%02d", i)
		conformance.OK(t, jobs.Accept(t.Context(), newJob(id), 501))
		_, err := runs.Start(t.Context(), id, "nonce", time.Now())
		conformance.OK(t, err)
		conformance.OK(t, runs.Complete(t.Context(), id, "nonce", job.Result{Blob: "b", MIME: "video/mp4"}, time.Now()))
	}
	refused := dynamo.NewJobs(runs, &handedOver{err: fault.New(fault.Unavailable, "busy")}, nil, time.Now)
	conformance.Fails(t, refused.Accept(t.Context(), newJob("job_99"), 501), fault.Unavailable)
	if got := usagePartitions(t, records, table, today); got < 12 {
		t.Errorf("the usage is in %d partitions", got)
	}
	totals, err := dynamo.NewUsage(records, table).Totals(t.Context(), "acme", today, today)
	conformance.OK(t, err)
	var sum usage.Counts
	for _, total := range totals {
		sum.Add(total.Counts)
	}
	if sum.Jobs != n || sum.JobsCompleted != n {
		t.Errorf("%d jobs and %d that completed, want %d", sum.Jobs, sum.JobsCompleted, n)
	}
}
