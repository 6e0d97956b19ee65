package dynamo

import (
	"cmp"
	"context"
	"errors"
	"math"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
)

// Runs is a job.Runs. Each write is one update of the record, with conditions on its state,
// deadline and nonce. Complete also writes the account's usage in the same transaction.
//
// A worker ends a job that has a result with Complete. All other ends are usually written by the state machine.
// Fail is for a worker whose task token is no longer accepted, and for callers that end a job from outside.
type Runs struct {
	client *dynamodb.Client
	table  string
	// These are nil in programs that neither accept nor complete jobs.
	usage   *Usage
	budgets *Budgets
}

var _ job.Runs = (*Runs)(nil)

func NewRuns(client *dynamodb.Client, table string) *Runs { return &Runs{client: client, table: table} }

func (r *Runs) CountIn(usage *Usage) *Runs {
	r.usage = usage
	return r
}

// HoldIn makes jobs reserve amounts in these budgets.
func (r *Runs) HoldIn(budgets *Budgets) *Runs {
	r.budgets = budgets
	return r
}

func (r *Runs) Get(ctx context.Context, id string) (job.Job, error) {
	j, err := r.get(ctx, id)
	return j, storeError("get a job", err)
}

func (r *Runs) get(ctx context.Context, id string) (job.Job, error) {
	j, _, err := r.getOpen(ctx, id)
	return j, err
}

// getOpen returns a job, and the number of its set of open jobs.
func (r *Runs) getOpen(ctx context.Context, id string) (j job.Job, set int, err error) {
	found, err := r.client.Query(ctx, &dynamodb.QueryInput{
		TableName: &r.table, ConsistentRead: aws.Bool(true), KeyConditionExpression: aws.String("#id = :id"),
		ExpressionAttributeNames: named("id"), ExpressionAttributeValues: item{":id": text(id)},
	})
	if err != nil {
		return job.Job{}, 0, err
	}
	var record, request item
	for _, part := range found.Items {
		switch (&reader{item: part}).text("part") {
		case RecordPart:
			record = part
		case requestPart:
			request = part
		}
	}
	if record == nil || request == nil {
		return job.Job{}, 0, job.ErrNotFound
	}
	if j, err = readJob(record, request); err != nil {
		return job.Job{}, 0, err
	}
	read := reader{item: record}
	return j, int(read.number(openSetAttribute)), read.err
}

func (r *Runs) Start(ctx context.Context, id, nonce string, now time.Time) (job.Job, error) {
	if nonce == "" {
		return job.Job{}, job.ErrNoNonce
	}
	before, err := r.update(ctx, id, update{
		set: "SET #status = if_not_exists(#open_status, :processing), #nonce = :nonce, #runs = #runs + :one, " +
			"#started_at = if_not_exists(#started_at, :now), #deadline = if_not_exists(#run_deadline, #deadline)",
		condition: isOpen + " AND #nonce <> :nonce AND #deadline > :now AND #runs < :most",
		names:     named("status", "open_status", "nonce", "runs", "started_at", "deadline", "run_deadline"),
		values: item{
			":pending": statusValue(job.Pending), ":processing": statusValue(job.Processing),
			":nonce": text(nonce), ":one": number(1), ":now": text(writeTime(now)), ":most": number(job.MaxRuns),
		},
	})
	if err != nil {
		return job.Job{}, storeError("start a run", err)
	}
	if before != nil {
		switch {
		case before.Status.Terminal():
			return job.Job{}, job.ErrEnded
		case before.Nonce == nonce:
		case !now.Before(before.Deadline):
			j, err := r.get(ctx, id)
			return j, storeError("start a run", cmp.Or(err, error(job.ErrOverdue)))
		default:
			return job.Job{}, job.ErrNoRunsLeft
		}
	}
	j, err := r.get(ctx, id)
	return j, storeError("start a run", err)
}

func (r *Runs) Progress(ctx context.Context, id, nonce string, done float64) error {
	if nonce == "" {
		return job.ErrNotOwn
	}
	if math.IsNaN(done) {
		done = 0
	}
	done = max(0, min(done, 1))
	before, err := r.update(ctx, id, update{
		set:       "SET #progress = :done",
		condition: isRun + " AND #progress < :done",
		names:     named("progress", "nonce", "status"),
		values: item{
			":done": fraction(done), ":nonce": text(nonce),
			":pending": statusValue(job.Pending), ":processing": statusValue(job.Processing),
		},
	})
	switch {
	case fault.Is(err, fault.NotFound):
		return job.ErrNotOwn
	case err != nil:
		return storeError("record progress", err)
	case before != nil && !runs(*before, nonce):
		return job.ErrNotOwn
	}
	return nil
}

func (r *Runs) Release(ctx context.Context, id, nonce string) error {
	if nonce == "" {
		return nil
	}
	_, err := r.update(ctx, id, update{
		set:       "SET #runs = #runs - :one, #nonce = :none",
		condition: isRun,
		names:     named("runs", "nonce", "status"),
		values: item{
			":one": number(1), ":none": text(""), ":nonce": text(nonce),
			":pending": statusValue(job.Pending), ":processing": statusValue(job.Processing),
		},
	})
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	return storeError("release a run", err)
}

func (r *Runs) Complete(ctx context.Context, id, nonce string, result job.Result, now time.Time) error {
	if nonce == "" {
		return job.ErrNotOwn
	}
	body, err := encoded(result)
	if err != nil {
		return err
	}
	j, set, err := r.getOpen(ctx, id)
	var before *job.Job
	if err == nil {
		j.Status, j.Result = job.Completed, &result
		before, err = r.complete(ctx, j, completeRun().with(item{
			":now": text(writeTime(now)), ":result": body, ":nonce": text(nonce),
		}))
	}
	switch {
	case fault.Is(err, fault.NotFound):
		return job.ErrNotOwn
	case err != nil:
		return storeError("complete a job", err)
	case before == nil, before.Status == job.Completed && before.Nonce == nonce:
		_ = r.FreeOpen(ctx, openEntry(j, set)) // if this fails, dropEnded removes the job later
		return nil
	case before.Status.Terminal() && before.Nonce == nonce:
		return job.ErrEnded
	case !runs(*before, nonce):
		return job.ErrNotOwn
	}
	return job.ErrOverdue
}

// complete ends a job that has a result, bills it and settles its holds.
func (r *Runs) complete(ctx context.Context, j job.Job, end update) (*job.Job, error) {
	if r.usage == nil {
		return nil, errors.New("cannot complete a job: this program has no usage store")
	}
	if len(j.Holds) > 0 && r.budgets == nil {
		return nil, errNoBudgets
	}
	bill, _ := r.usage.addition(job.Billed(j))
	writes := []types.TransactWriteItem{{Update: &types.Update{
		TableName: &r.table, Key: jobKey(j.ID, RecordPart),
		UpdateExpression: &end.set, ConditionExpression: &end.condition,
		ExpressionAttributeNames: end.names, ExpressionAttributeValues: end.values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}}, bill}
	alone := len(writes)
	for _, s := range job.Settled(j) {
		writes = append(writes, r.budgets.settleHold(j.ID, s)...)
	}
	err := transact(ctx, r.client, writes)
	refusal := refused(err)
	if refusal != nil && !refusal.failed[0] {
		// Only a hold's condition failed. The hold has expired, because this process's clock is minutes slow.
		err = transact(ctx, r.client, writes[:alone])
		if refusal = refused(err); refusal == nil && err == nil {
			return nil, r.settle(ctx, j)
		}
	}
	switch {
	case refusal == nil:
		return nil, err
	case refusal.items[0] == nil:
		return nil, job.ErrNotFound
	}
	before, err := readRecord(refusal.items[0])
	return &before, err
}

func (r *Runs) Fail(ctx context.Context, id, nonce string, failure job.Failure, now time.Time) error {
	if err := r.writeFailure(ctx, id, nonce, failure, now); err != nil {
		return err
	}
	j, set, err := r.getOpen(ctx, id)
	if err == nil {
		err = errors.Join(r.settle(ctx, j), r.FreeOpen(ctx, openEntry(j, set)))
	}
	return storeError("fail a job", err)
}

func (r *Runs) writeFailure(ctx context.Context, id, nonce string, failure job.Failure, now time.Time) error {
	body, err := encoded(failure)
	if err != nil {
		return err
	}
	values := item{":failure": body, ":now": text(writeTime(now))}
	end := FailJob()
	if nonce != "" {
		end, values[":nonce"] = FailRun(), text(nonce)
	}
	before, err := r.update(ctx, id, end.with(values))
	switch {
	case err != nil:
		return storeError("fail a job", err)
	case before == nil, before.Status == job.Failed && before.Nonce == nonce && *before.Failure == failure:
		return nil
	case before.Status.Terminal():
		return job.ErrEnded
	}
	return job.ErrNotOwn
}

func runs(j job.Job, nonce string) bool { return j.Nonce == nonce && j.Status == job.Processing }

type update struct {
	set, condition string
	names          map[string]string
	values         item
}

// If the condition fails, update returns the current job without its request.
func (r *Runs) update(ctx context.Context, id string, u update) (*job.Job, error) {
	old, refused, err := tryUpdate(ctx, r.client, &dynamodb.UpdateItemInput{
		TableName: &r.table, Key: jobKey(id, RecordPart),
		UpdateExpression: &u.set, ConditionExpression: &u.condition,
		ExpressionAttributeNames: u.names, ExpressionAttributeValues: u.values,
	})
	switch {
	case !refused:
		return nil, err
	case old == nil:
		return nil, job.ErrNotFound
	}
	j, err := readRecord(old)
	return &j, err
}
