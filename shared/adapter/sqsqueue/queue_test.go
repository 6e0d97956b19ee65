package sqsqueue_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/adapter/sqsqueue"
	"cutroom/shared/adapter/stepfn"
	"cutroom/shared/domain/job"
	"cutroom/shared/service/worker/workertest"
	"cutroom/shared/testkit/awstest"
)

type home struct {
	// runs is the worker's view of the records. jobs is the service's view.
	runs    *dynamo.Runs
	jobs    *dynamo.Jobs
	queue   *sqsqueue.Queue
	video   awstest.Queue
	urls    map[job.Lane]string
	tasks   *stepfn.Tasks
	machine string
	table   string
}

// replace contains pairs of strings. In the state machine's definition, the second string of a pair replaces the
// first.
func newHome(t *testing.T, cloud *awstest.Cloud, replace ...string) home {
	t.Helper()
	return newHomeBehind(t, cloud, cloud.Config(), replace...)
}

func newHomeBehind(t *testing.T, cloud *awstest.Cloud, config aws.Config, replace ...string) home {
	t.Helper()
	table := cloud.MakeTable(t, "jobs")
	h := home{video: cloud.MakeQueue(t, 10), table: table}
	h.urls = map[job.Lane]string{job.VideoLane: h.video.URL, job.ImageLane: cloud.MakeQueue(t, 10).URL}
	definition, err := stepfn.Definition("aws", table)
	if err != nil {
		t.Fatal(err)
	}
	h.machine = cloud.MakeStateMachine(t, strings.NewReplacer(replace...).Replace(definition))
	machine := stepfn.NewMachine(config, h.machine, h.urls)
	h.tasks = stepfn.NewTasks(config)
	records := dynamo.NewClient(config)
	h.runs = dynamo.NewRuns(records, table).CountIn(dynamo.NewUsage(records, cloud.MakeTable(t, "usage")))
	h.jobs = dynamo.NewJobs(h.runs, machine, sqsqueue.NewLengths(config, h.urls), time.Now)
	h.queue = sqsqueue.New(sqsqueue.Config{
		AWS: config, URLs: h.urls, Jobs: h.runs, Tasks: h.tasks, PollTime: time.Second, Now: time.Now,
		Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	t.Cleanup(h.queue.Close)
	return h
}

func TestQueueConforms(t *testing.T) {
	t.Parallel() // the test mostly waits
	cloud := local.Cloud(t)
	workertest.Run(t, func(t *testing.T) workertest.Harness {
		h := newHome(t, cloud)
		return workertest.Harness{Queue: h.queue, Store: h.jobs, Runs: h.jobs}
	})
}
