package sqs_test

import (
	"log/slog"
	"testing"
	"time"

	"cutroom/shared/awstest"
	"cutroom/shared/dynamo"
	"cutroom/shared/job"
	"cutroom/shared/sqs"
	"cutroom/shared/stepfn"
	"cutroom/shared/worker/workertest"
)

// home is the AWS of one test: records, queues and state machine.
type home struct {
	jobs  *dynamo.Jobs
	queue *sqs.Queue
	video awstest.Queue
}

func newHome(t *testing.T, cloud *awstest.Cloud) home {
	t.Helper()
	table := cloud.MakeTable(t, "jobs")
	h := home{video: cloud.MakeQueue(t, 10)}
	urls := map[job.Lane]string{job.VideoLane: h.video.URL, job.ImageLane: cloud.MakeQueue(t, 10).URL}
	definition, err := stepfn.Definition(table)
	if err != nil {
		t.Fatal(err)
	}
	config := cloud.Config()
	machine := stepfn.NewMachine(config, cloud.MakeStateMachine(t, definition), urls)
	runs := dynamo.NewRuns(dynamo.NewClient(config), table)
	h.jobs = dynamo.NewJobs(runs, machine, sqs.NewLengths(config, urls), time.Now)
	h.queue = sqs.New(sqs.Config{
		AWS: config, URLs: urls, Jobs: runs, Tasks: stepfn.NewTasks(config), Now: time.Now,
		Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	t.Cleanup(h.queue.Close)
	return h
}

func TestQueue(t *testing.T) {
	cloud := awstest.Start(t)
	workertest.Run(t, func(t *testing.T) workertest.Harness {
		h := newHome(t, cloud)
		return workertest.Harness{Queue: h.queue, Store: h.jobs, Runs: h.jobs}
	})
}
