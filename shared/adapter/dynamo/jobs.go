package dynamo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
	"cutroom/shared/platform/clock"
)

// Dispatcher hands accepted jobs to the queue of their lane.
type Dispatcher interface {
	// Dispatch hands a job over. It does nothing if the job was handed over before.
	//
	// Errors: a fault if the job was definitely not handed over; after any other error
	// it may have been.
	Dispatch(ctx context.Context, j job.Job) error
}

// Lengths reads the lengths of the queues.
type Lengths interface {
	// Length returns about how many jobs of a lane wait or are being processed.
	Length(ctx context.Context, lane job.Lane) (int, error)
	// Depth returns about how many wait, and how many workers have.
	Depth(ctx context.Context, lane job.Lane) (waiting, leased int, err error)
}

// Jobs is a job.Store and a job.Runs.
//
// An acceptance is one transaction: the record, the request, the account's set of open
// jobs, whose size makes the account's limit exact, its usage, and what the job takes from
// budgets. Then the job is handed to its
// queue. A process that dies in between leaves a record whose id nobody received, which
// ends at its deadline.
type Jobs struct {
	*Runs
	dispatcher Dispatcher
	lengths    Lengths
	index      *jobIndex
	lanes      laneStates
	now        func() time.Time
	// samples counts the samples of open jobs, so that each reads other sets.
	samples atomic.Uint32
	widths  widths
	beliefs beliefs
}

var _ job.Store = (*Jobs)(nil)

// NewJobs returns the jobs of a table. The clock decides which open jobs of an account
// are past their deadline.
func NewJobs(runs *Runs, dispatcher Dispatcher, lengths Lengths, now func() time.Time) *Jobs {
	return &Jobs{
		Runs: runs, dispatcher: dispatcher, lengths: lengths, index: newJobIndex(runs.client, runs.table, now), now: now,
		widths: widths{large: largeFrom},
	}
}

// count returns the write that adds so many times a job to the usage of its account,
// if jobs are counted.
func (s *Jobs) count(j job.Job, times int64) []types.TransactWriteItem {
	if s.usage == nil {
		return nil
	}
	record := job.Usage(j)
	record.Jobs *= times
	write, _ := s.usage.addition(record)
	return []types.TransactWriteItem{write}
}

// Accept records a pending job and hands it to its queue.
//
// Errors: fault.Limited if the account has limit or more jobs that have not ended (0
// means no limit); fault.Exhausted if a budget has too little left for its claim; the
// dispatcher's fault if the job was not handed over, and nothing is recorded then;
// fault.Unavailable. After any other error the job may have been accepted.
func (s *Jobs) Accept(ctx context.Context, j job.Job, limit int, claims ...budget.Claim) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	if len(claims) > 0 && s.budgets == nil {
		return errNoBudgets
	}
	set, err := s.record(ctx, &j, limit, claims)
	if errors.Is(err, errRecorded) {
		return storeError("accept a job", s.acceptAgain(ctx, j.ID))
	}
	if err != nil {
		return storeError("accept a job", err)
	}
	err = s.dispatcher.Dispatch(ctx, j)
	if definite := new(fault.Error); errors.As(err, &definite) {
		// If this fails too, the record ends at its deadline, like that of a process
		// that died here.
		return errors.Join(err, s.withdraw(ctx, j, set))
	}
	return err
}

// acceptAgain hands a recorded job over once more, because its first acceptance may have
// been cut off between the two steps. It hands over what the record says, so that both
// are the same to the byte. A refusal withdraws nothing: the first may have succeeded.
func (s *Jobs) acceptAgain(ctx context.Context, id string) error {
	j, err := s.Get(ctx, id)
	if err != nil || j.Status != job.Pending {
		return err
	}
	return s.dispatcher.Dispatch(ctx, j)
}

// errRecorded is the error for accepting a job that has a record.
var errRecorded = errors.New("the job is recorded")

// maxOpen is how many open jobs an account may have whose tier sets no limit, and mostOpen
// the highest limit.
const maxOpen, mostOpen = 5000, 25_000

// record writes the items of a job, and returns the set of open jobs that has it, unless the
// account's sets of open jobs are full of jobs
// that really are open, or a budget has too little left. The job gets what it holds.
//
// Errors: errRecorded; fault.Limited; fault.Exhausted.
func (s *Jobs) record(ctx context.Context, j *job.Job, most int, claims []budget.Claim) (set int, err error) {
	limit := s.limitOf(j.Account, most)
	at := place{partition: s.index.partitionOf(ctx, *j, limit)}
	if at.spot, err = s.firstSpot(ctx, *j, limit); err != nil {
		return 0, err
	}
	j.Holds = holdsOf(claims)
	for {
		writes, err := s.acceptance(*j, at, claims)
		if err != nil {
			return 0, err
		}
		err = transact(ctx, s.client, writes)
		refusal := refused(err)
		switch {
		case refusal == nil:
			return at.set, err
		case refusal.failed[0]:
			return 0, errRecorded
		}
		if refusal.failed[openWrite] {
			// The set may be full of jobs that have ended, and others may have room.
			if at.spot, limit, err = s.findRoom(ctx, *j, limit); err != nil {
				return 0, err
			}
		}
		for i, c := range claims {
			if !refusal.failed[claimWrite+i] {
				continue
			}
			if err := s.budgets.retake(ctx, c, s.now()); err != nil {
				return 0, err
			}
		}
		// Others may take what was freed before this call does. It then reads the sets
		// again, a little later than they do.
		if !clock.Wait(ctx, rand.N(conflictWait)) {
			return 0, ctx.Err()
		}
	}
}

// The places of writes in an acceptance.
const (
	openWrite  = 2
	claimWrite = 3
)

// place is where a job is recorded: in a set of open jobs, in a partition of the index, and in
// one of so many shards of usage.
type place struct {
	spot
	partition string
}

// acceptance returns the writes that record a job at a place. Those with conditions are the
// first.
func (s *Jobs) acceptance(j job.Job, at place, claims []budget.Claim) ([]types.TransactWriteItem, error) {
	record, request, err := jobItems(j)
	if err != nil {
		return nil, err
	}
	if at.set > 0 {
		record[openSetAttribute] = number(int64(at.set))
	}
	if at.partition != j.Account {
		record["account"], record[ownerAttribute] = text(at.partition), text(j.Account)
	}
	writes := []types.TransactWriteItem{
		{Put: &types.Put{
			TableName: &s.table, Item: record,
			ConditionExpression: aws.String("attribute_not_exists(#id)"), ExpressionAttributeNames: named("id"),
		}},
		{Put: &types.Put{TableName: &s.table, Item: request}},
		{Update: s.addOpen(j, at.spot)},
	}
	if len(claims) > 0 {
		writes = append(writes, s.budgets.claimWrites(claims)...)
	}
	for _, h := range j.Holds {
		writes = append(writes, s.budgets.noteHold(j, h))
	}
	return append(writes, s.count(j, 1)...), nil
}

// addOpen returns the write that adds a job to a set, if that has room.
func (s *Jobs) addOpen(j job.Job, at spot) *types.Update {
	add := &types.Update{
		TableName: &s.table, Key: openKey(j.Account, at.set),
		UpdateExpression:         aws.String("ADD #open :job SET #ttl = :ttl"),
		ConditionExpression:      aws.String("(attribute_not_exists(#open) OR size(#open) < :limit)"),
		ExpressionAttributeNames: named("open", "ttl"),
		ExpressionAttributeValues: item{
			":job": texts(openJob{j.Lane, j.ID}.String()), ":limit": number(int64(at.room)),
			":ttl": seconds(j.Deadline.Add(openAge)),
		},
	}
	if !at.unlessWide.IsZero() {
		*add.ConditionExpression += " AND (attribute_not_exists(#wide_until) OR #wide_until < :wide)"
		add.ExpressionAttributeNames["#wide_until"] = wideAttribute
		add.ExpressionAttributeValues[":wide"] = moment(at.unlessWide)
	}
	return add
}

// withdraw deletes a job that was not handed over.
func (s *Jobs) withdraw(ctx context.Context, j job.Job, set int) error {
	back := s.count(j, -1)
	for _, h := range budget.Settle(j.Holds, budget.Amounts{}) {
		back = append(back, s.budgets.settleHold(j.ID, h)...)
	}
	err := transact(ctx, s.client, append(back, []types.TransactWriteItem{
		{Delete: &types.Delete{
			TableName: &s.table, Key: jobKey(j.ID, RecordPart),
			ConditionExpression:       aws.String("#status = :pending AND attribute_not_exists(#started_at)"),
			ExpressionAttributeNames:  named("status", "started_at"),
			ExpressionAttributeValues: item{":pending": text(string(job.Pending))},
		}},
		{Delete: &types.Delete{TableName: &s.table, Key: jobKey(j.ID, requestPart)}},
		{Update: &types.Update{
			TableName: &s.table, Key: openKey(j.Account, set), UpdateExpression: aws.String("DELETE #open :job"),
			ExpressionAttributeNames:  named("open"),
			ExpressionAttributeValues: item{":job": texts(openJob{j.Lane, j.ID}.String())},
		}},
	}...))
	if refused(err) != nil {
		return nil // a worker has started it after all
	}
	if err != nil {
		return fmt.Errorf("withdraw job %s: %w", j.ID, err)
	}
	return nil
}

// Expire fails a job that is past its deadline with the timeout failure, as of its
// deadline, and returns the job as it then is.
//
// Errors: fault.NotFound; fault.Unavailable.
func (s *Jobs) Expire(ctx context.Context, id string, now time.Time) (job.Job, error) {
	body, err := encoded(job.TimeoutFailure())
	if err != nil {
		return job.Job{}, err
	}
	refusing, err := s.update(ctx, id, update{
		set:       "SET #status = :failed, #failure = :failure, #completed_at = #deadline, #nonce = :none",
		condition: isOpen + " AND #deadline <= :now",
		names:     named("status", "failure", "completed_at", "deadline", "nonce"),
		values: item{
			":failed": statusValue(job.Failed), ":failure": body, ":none": text(""), ":now": text(writeTime(now)),
			":pending": statusValue(job.Pending), ":processing": statusValue(job.Processing),
		},
	})
	if err != nil {
		return job.Job{}, storeError("expire a job", err)
	}
	j, at, err := s.getOpen(ctx, id)
	if err == nil && refusing == nil {
		err = errors.Join(s.settle(ctx, j), s.free(ctx, j, at.set))
	}
	return j, storeError("expire a job", err)
}

// Complete is Runs' Complete. It also updates the lane's run times.
func (s *Jobs) Complete(ctx context.Context, id, nonce string, result job.Result, now time.Time) error {
	if err := s.Runs.Complete(ctx, id, nonce, result, now); err != nil {
		return err
	}
	j, err := s.Get(ctx, id)
	if err != nil {
		return err
	}
	defer s.lanes.forget(j.Lane)
	return s.RecordRunTime(ctx, j, j.CompletedAt.Sub(j.StartedAt))
}

// Fail is Runs' Fail. It also returns what the job holds of budgets, and updates the
// account's set of open jobs.
func (s *Jobs) Fail(ctx context.Context, id, nonce string, failure job.Failure, now time.Time) error {
	if err := s.Runs.Fail(ctx, id, nonce, failure, now); err != nil {
		return err
	}
	j, at, err := s.getOpen(ctx, id)
	if err == nil {
		err = errors.Join(s.settle(ctx, j), s.free(ctx, j, at.set))
	}
	return storeError("fail a job", err)
}

// Forget deletes the items of a job that has ended. Any other is left alone.
//
// Errors: fault.Unavailable.
func (s *Jobs) Forget(ctx context.Context, id string) error {
	err := transact(ctx, s.client, []types.TransactWriteItem{
		{Delete: &types.Delete{
			TableName: &s.table, Key: jobKey(id, RecordPart),
			ConditionExpression:      aws.String("attribute_not_exists(#id) OR #status IN (:completed, :failed)"),
			ExpressionAttributeNames: named("id", "status"),
			ExpressionAttributeValues: item{
				":completed": statusValue(job.Completed), ":failed": statusValue(job.Failed),
			},
		}},
		{Delete: &types.Delete{TableName: &s.table, Key: jobKey(id, requestPart)}},
		{Delete: &types.Delete{TableName: &s.table, Key: jobKey(id, webhookPart)}},
	})
	if refused(err) != nil {
		return nil
	}
	return storeError("forget a job", err)
}
