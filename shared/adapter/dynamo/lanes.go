package dynamo

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"cutroom/shared/domain/job"
)

func laneKey(lane job.Lane, part string) item { return jobKey("lane#"+string(lane), part) }

const (
	runTimesPart = "run_times"
	// runTimePrefix starts the names of the recentRuns attributes that hold run times, in milliseconds. A job's
	// account and id select the attribute. So a single write, without a read, keeps roughly the latest run times,
	// at most runsOfAccount per account, and a retry changes nothing.
	runTimePrefix             = "run_"
	recentRuns, runsOfAccount = 20, 5
	// Run times older than runTimeFor are ignored, because an account that stops sending jobs never
	// overwrites its own.
	runTimeFor = 24 * time.Hour
	// Version 0.1.0 wrote neither accounts nor end times.
	runModelPrefix, runAccountPrefix, runEndPrefix = "model_", "account_", "ended_"
	// runTimeItems is the number of partitions that hold a lane's run times. Each can take a
	// thousand writes per second.
	runTimeItems = 4
)

func runTimesKey(lane job.Lane, n uint32) item {
	return laneKey(lane+job.Lane(fmt.Sprint("#", n)), runTimesPart)
}

func (r *Runs) RecordRunTime(ctx context.Context, j job.Job, took time.Duration) error {
	place := (hashOf(j.Account) + hashOf(j.ID)%runsOfAccount) % recentRuns
	_, err := r.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &r.table, Key: runTimesKey(j.Lane, place%runTimeItems),
		UpdateExpression: aws.String("SET #run = :took, #model = :model, #account = :account, #ended = :ended"),
		ExpressionAttributeNames: map[string]string{
			"#run": fmt.Sprint(runTimePrefix, place), "#model": fmt.Sprint(runModelPrefix, place),
			"#account": fmt.Sprint(runAccountPrefix, place), "#ended": fmt.Sprint(runEndPrefix, place),
		},
		ExpressionAttributeValues: item{
			":took": number(took.Milliseconds()), ":model": text(j.Model), ":account": text(j.Account),
			":ended": moment(j.StartedAt.Add(took)),
		},
	})
	return storeError("record a run time", err)
}

const (
	workersPart = "workers"
	// A worker records at intervals of BeatEvery that it is running. For WarmFor after that, the lane counts as
	// having a running worker. A worker does not replace a time that is less than freshFor old, because that time
	// stays recent enough until the next beat.
	BeatEvery = 30 * time.Second
	WarmFor   = 75 * time.Second
	freshFor  = 15 * time.Second
)

type Workers struct {
	client *dynamodb.Client
	table  string
	now    func() time.Time

	mu sync.Mutex
	// seen maps each lane to the latest time at which a worker was seen.
	seen map[job.Lane]time.Time
}

func NewWorkers(client *dynamodb.Client, table string, now func() time.Time) *Workers {
	return &Workers{client: client, table: table, now: now, seen: map[job.Lane]time.Time{}}
}

// Workers call Beat at intervals of BeatEvery. It writes nothing if another worker has written recently.
func (w *Workers) Beat(ctx context.Context, lane job.Lane) error {
	seen, err := w.read(ctx, lane)
	if err != nil {
		return storeError("record a worker", err)
	}
	now := w.now()
	if age := now.Sub(seen); age >= 0 && age < freshFor {
		return nil
	}
	// If another worker has recorded a later time, the condition fails.
	_, _, err = tryUpdate(ctx, w.client, &dynamodb.UpdateItemInput{
		TableName: &w.table, Key: laneKey(lane, workersPart),
		UpdateExpression:          aws.String("SET #seen = :now, #ttl = :ttl"),
		ConditionExpression:       aws.String("attribute_not_exists(#seen) OR #seen < :now"),
		ExpressionAttributeNames:  named("seen", "ttl"),
		ExpressionAttributeValues: item{":now": moment(now), ":ttl": seconds(now.Add(24 * time.Hour))},
	})
	return storeError("record a worker", err)
}

// Warm reports whether the lane had a running worker within the last WarmFor.
func (w *Workers) Warm(ctx context.Context, lane job.Lane) (bool, error) {
	w.mu.Lock()
	known := w.seen[lane]
	w.mu.Unlock()
	if w.now().Sub(known) < WarmFor {
		return true, nil
	}
	seen, err := w.read(ctx, lane)
	if err != nil {
		return false, storeError("look up workers", err)
	}
	w.mu.Lock()
	w.seen[lane] = seen
	w.mu.Unlock()
	return w.now().Sub(seen) < WarmFor, nil
}

// read does not use a consistent read.
func (w *Workers) read(ctx context.Context, lane job.Lane) (time.Time, error) {
	found, err := w.client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &w.table, Key: laneKey(lane, workersPart)})
	if err != nil {
		return time.Time{}, err
	}
	r := reader{item: found.Item}
	return r.moment("seen"), r.err
}
