package dynamo_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/domain/job"
	"cutroom/shared/testkit/awstest"
	"cutroom/shared/testkit/conformance"
)

// openSets returns how many ids each set of open jobs has that has any, the largest first.
func (c counted) openSets(t *testing.T) (sizes []int) {
	t.Helper()
	found, err := c.client.Scan(t.Context(), &dynamodb.ScanInput{TableName: &c.table})
	conformance.OK(t, err)
	for _, i := range found.Items {
		if set, there := i["open"].(*types.AttributeValueMemberSS); there {
			sizes = append(sizes, len(set.Value))
		}
	}
	slices.Sort(sizes)
	slices.Reverse(sizes)
	return sizes
}

// An account without a limit has one set of open jobs, also if a hundred of its jobs that
// failed are in it, until a hundred are open. Then it has several, which all processes count
// and from which jobs are removed, and an hour after it had few it has one again.
func TestAccountWithoutLimitBecomesWide(t *testing.T) {
	p, records := newProcesses(t, 2, awstest.Faults{})
	ctx, n := t.Context(), 0
	accept := func(more int) (ids []string) {
		t.Helper()
		for range more {
			ids = append(ids, fmt.Sprintf("job_%03d", n))
			conformance.OK(t, p.next().Accept(ctx, p.job(ids[len(ids)-1]), 0))
			n++
		}
		return ids
	}
	for range p.all {
		_, err := p.next().Backlog(ctx, job.VideoLane, "acme", 0)
		conformance.OK(t, err)
	}
	count := func(want int) {
		t.Helper()
		for range p.all {
			rough, err := p.next().Backlog(ctx, job.VideoLane, "acme", 0)
			conformance.OK(t, err)
			if rough.Recount != nil {
				if rough.AccountJobs < want {
					t.Errorf("the estimate of %d jobs is %+v", want, rough)
				}
				rough, err = rough.Recount(ctx)
				conformance.OK(t, err)
			}
			conformance.Same(t, "open jobs", []int{rough.AccountOpen, rough.AccountJobs}, []int{want, want})
		}
	}
	open := accept(100)
	for _, id := range open[:60] {
		p.failElsewhere(id)
	}
	open = append(open[60:], accept(1)...)
	conformance.Same(t, "the set without what has failed", records.openSets(t), []int{41})

	open = append(open, accept(120)...)
	if sizes := records.openSets(t); len(sizes) < 10 || sizes[0] > 110 {
		t.Errorf("the sets have %v", sizes)
	}
	count(161)
	// A process of an earlier version knows the first set alone, with more room.
	conformance.OK(t, p.calm.Accept(ctx, p.job("job_of_earlier"), 250))
	count(162)
	open = append(open, "job_of_earlier")
	limited, err := p.next().Backlog(ctx, job.VideoLane, "acme", 100)
	conformance.OK(t, err)
	conformance.Same(t, "what a key with a limit sees", limited.AccountOpen, 162)

	// Where the queue says less, all sets are compared at once, by two batches beside a sample
	// and the sets. Then only those are that have very few jobs, by one.
	p.queue.length = 0
	p.pass(dynamo.BelievedFor)
	for i, want := range []int{4, 3, 3} {
		p.proxy.Calls()
		backlog, err := p.next().Backlog(ctx, job.VideoLane, "acme", 0)
		conformance.OK(t, err)
		conformance.Same(t, "open jobs", backlog.AccountJobs, 162)
		conformance.Same(t, fmt.Sprint("batches of the count ", i), p.proxy.Calls()["DynamoDB.BatchGetItem"], want)
	}
	p.queue.length = 1 << 20

	for i, id := range open {
		end := func() error { return p.next().Fail(ctx, id, "", job.CancelledFailure(), p.at()) }
		if i%2 == 0 {
			_, err := p.next().Start(ctx, id, "n", p.at())
			conformance.OK(t, err)
			end = func() error {
				return p.next().Complete(ctx, id, "n", job.Result{Blob: "b", MIME: "video/mp4"}, p.at())
			}
		}
		conformance.OK(t, end())
	}
	conformance.Same(t, "the sets afterwards", len(records.openSets(t)), 0)
	count(0)

	p.pass(time.Hour - time.Minute)
	accept(40)
	if sizes := records.openSets(t); len(sizes) < 10 {
		t.Errorf("within the hour the sets have %v", sizes)
	}
	p.pass(time.Minute)
	accept(8)
	if sizes := records.openSets(t); sizes[0] < 8 {
		t.Errorf("after it the sets have %v", sizes)
	}
	count(48)
	p.pass(job.MaxAge + time.Second) // by which clocks may differ
	p.proxy.Calls()
	_, err = p.next().Backlog(ctx, job.VideoLane, "acme", 0)
	conformance.OK(t, err)
	conformance.Same(t, "calls when the others have ended", awstest.CallList(p.proxy.Calls()), "BatchGetItem, GetItem")
}

// A process whose clock is behind, and that remembers an earlier end, does not shorten the time
// for which an account is wide: others add to its sets until then.
func TestClockBehindShortensNoWidth(t *testing.T) {
	p, records := newProcesses(t, 1, awstest.Faults{})
	ctx := t.Context()
	ahead := dynamo.NewJobs(dynamo.NewRuns(dynamo.NewClient(p.proxy.Config()), records.table), &handedOver{}, p.queue,
		func() time.Time { return p.at().Add(10 * time.Minute) })
	wideUntil := func() string {
		t.Helper()
		found, err := records.client.Scan(ctx, &dynamodb.ScanInput{TableName: &records.table})
		conformance.OK(t, err)
		for _, i := range found.Items {
			if until, there := i["wide_until"].(*types.AttributeValueMemberN); there {
				return until.Value
			}
		}
		return ""
	}
	for i := range 161 {
		conformance.OK(t, p.next().Accept(ctx, p.job(fmt.Sprintf("job_%03d", i)), 0))
	}
	first := wideUntil()
	p.pass(31 * time.Minute)
	for range 2 { // it finds that the account is wide, and then that this ends soon
		_, err := ahead.Backlog(ctx, job.VideoLane, "acme", 0)
		conformance.OK(t, err)
	}
	later := wideUntil()
	if first == "" || later <= first {
		t.Fatalf("the account is wide until %q, and then until %q", first, later)
	}
	_, err := p.next().Backlog(ctx, job.VideoLane, "acme", 0)
	conformance.OK(t, err)
	conformance.Same(t, "until when the account is wide", wideUntil(), later)
}

// The index is spread for an account without a limit that has many open jobs, an hour later, as
// for one with a high limit, and lists have all of its jobs.
func TestAccountWithoutLimitIsSpread(t *testing.T) {
	p, records := newProcesses(t, 2, awstest.Faults{})
	for _, jobs := range p.all {
		jobs.LargeFrom(60)
	}
	ctx := t.Context()
	var want []string
	accept := func(n int) {
		t.Helper()
		for range n {
			id := fmt.Sprintf("job_%03d", len(want))
			jobs := p.next()
			_, err := jobs.Backlog(ctx, job.VideoLane, "acme", 0)
			conformance.OK(t, err)
			conformance.OK(t, jobs.Accept(ctx, p.job(id), 0))
			want = slices.Insert(want, 0, id)
		}
	}
	partitions := func() (n int) {
		for name := range records.partitions(t) {
			if strings.HasPrefix(name, "acme") {
				n++
			}
		}
		return n
	}
	accept(130)
	p.pass(time.Hour - time.Second)
	accept(5)
	conformance.Same(t, "partitions of the first hour", partitions(), 1)
	p.pass(time.Second)
	accept(150)
	if got := partitions(); got < 6 {
		t.Errorf("the jobs are in %d partitions", got)
	}
	var got []string
	for after := ""; ; {
		page, next, err := p.calm.List(ctx, "acme", job.Filter{}, after, 400, p.at())
		conformance.OK(t, err)
		for _, j := range page {
			got = append(got, j.ID)
		}
		if after = next; next == "" {
			break
		}
	}
	conformance.Same(t, "the list", got, want)
}
