package dynamo

import (
	"context"
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"cutroom/shared/domain/job"
)

func laneKey(lane job.Lane, part string) item { return jobKey("lane#"+string(lane), part) }

const (
	runTimesPart = "run_times"
	// runTimePrefix is the prefix of the attributes that hold run times, in
	// milliseconds; recentRuns is how many there are. A job's id decides which one it
	// writes, so that one write without a read keeps roughly the latest, and a repeated
	// write changes nothing.
	runTimePrefix = "run_"
	recentRuns    = 20
)

// RecordRunTime records how long the run of a completed job took, for the mean
// run time of its lane: one write.
//
// Errors: fault.Unavailable.
func (r *Runs) RecordRunTime(ctx context.Context, lane job.Lane, id string, took time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	hash := fnv.New32a()
	hash.Write([]byte(id))
	_, err := r.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &r.table, Key: laneKey(lane, runTimesPart),
		UpdateExpression:          aws.String("SET #run = :took"),
		ExpressionAttributeNames:  map[string]string{"#run": fmt.Sprint(runTimePrefix, hash.Sum32()%recentRuns)},
		ExpressionAttributeValues: item{":took": number(took.Milliseconds())},
	})
	return storeError("record a run time", err)
}

// meanRunTime returns the mean of the recorded run times, or 0 if there are none.
func (r *Runs) meanRunTime(ctx context.Context, lane job.Lane) (time.Duration, error) {
	found, err := r.client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &r.table, Key: laneKey(lane, runTimesPart)})
	if err != nil {
		return 0, err
	}
	var (
		total  time.Duration
		count  time.Duration
		values = reader{item: found.Item}
	)
	for name := range found.Item {
		if strings.HasPrefix(name, runTimePrefix) {
			total += time.Duration(values.number(name)) * time.Millisecond
			count++
		}
	}
	if count == 0 || values.err != nil {
		return 0, values.err
	}
	return total / count, nil
}

const (
	workersPart = "workers"
	// BeatEvery is how often a worker records that it is running, and WarmFor how long
	// after that it counts as running.
	BeatEvery = 30 * time.Second
	WarmFor   = 75 * time.Second
)

// Workers records whether a lane has workers that can take a job at once.
type Workers struct {
	client *dynamodb.Client
	table  string
	now    func() time.Time
}

// NewWorkers returns the workers of the lanes, recorded in the table of jobs.
func NewWorkers(client *dynamodb.Client, table string, now func() time.Time) *Workers {
	return &Workers{client, table, now}
}

// Beat records that a worker of the lane is running: one write, to be repeated every
// BeatEvery.
//
// Errors: fault.Unavailable.
func (w *Workers) Beat(ctx context.Context, lane job.Lane) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	now := w.now()
	_, err := w.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &w.table, Key: laneKey(lane, workersPart),
		UpdateExpression:         aws.String("SET #seen = :now, #ttl = :ttl"),
		ConditionExpression:      aws.String("attribute_not_exists(#seen) OR #seen < :now"),
		ExpressionAttributeNames: named("seen", "ttl"),
		ExpressionAttributeValues: item{
			":now": moment(now), ":ttl": seconds(now.Add(24 * time.Hour)),
		},
	})
	if _, failed := conditionFailed(err); failed {
		return nil // another worker has recorded a later time
	}
	return storeError("record a worker", err)
}

// Warm reports whether a worker of the lane was running within WarmFor: one read.
//
// Errors: fault.Unavailable.
func (w *Workers) Warm(ctx context.Context, lane job.Lane) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	found, err := w.client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &w.table, Key: laneKey(lane, workersPart)})
	if err != nil {
		return false, storeError("look for workers", err)
	}
	r := reader{item: found.Item}
	seen := r.moment("seen")
	return w.now().Sub(seen) < WarmFor, r.err
}
