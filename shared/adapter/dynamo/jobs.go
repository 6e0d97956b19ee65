package dynamo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
	"cutroom/shared/platform/clock"
)

type Dispatcher interface {
	// Dispatch queues a job once, together with its entry in the sets of open jobs.
	//
	// Errors: a fault if the job was definitely not queued. After any other error, it may have been queued.
	Dispatch(ctx context.Context, j job.Job, open OpenEntry) error
}

type Lengths interface {
	Length(ctx context.Context, lane job.Lane) (int, error)
	Depth(ctx context.Context, lane job.Lane) (waiting, leased int, err error)
}

// Jobs is a job.Store and a job.Runs.
//
// One transaction writes a job's record, its usage, its budget holds, and its element in a set of
// the account's open jobs. Then the job is queued. If a process dies between these two steps, the
// record remains under an id that no client received, and the job ends at its deadline.
type Jobs struct {
	*Runs
	dispatcher  Dispatcher
	lengths     Lengths
	lanes       laneStates
	now         func() time.Time
	comparisons comparisons
}

var _ job.Store = (*Jobs)(nil)

func NewJobs(runs *Runs, dispatcher Dispatcher, lengths Lengths, now func() time.Time) *Jobs {
	return &Jobs{Runs: runs, dispatcher: dispatcher, lengths: lengths, now: now}
}

// count returns the writes that add a job to its account's usage, or subtract it if times is -1.
func (s *Jobs) count(j job.Job, times int64) []types.TransactWriteItem {
	if s.usage == nil {
		return nil
	}
	record := job.Usage(j)
	record.Jobs *= times
	write, _ := s.usage.addition(record)
	return []types.TransactWriteItem{write}
}

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
	err = s.dispatcher.Dispatch(ctx, j, openEntry(j, set))
	if definite := new(fault.Error); errors.As(err, &definite) {
		// If the withdrawal also fails, the job ends at its deadline.
		return errors.Join(err, s.withdraw(ctx, j, set))
	}
	return err
}

// acceptAgain queues a recorded job again, because its first acceptance may have been interrupted.
// It reads the record, so that both requests to start the execution have the same bytes. After an
// error it withdraws nothing, because the first request may have succeeded.
func (s *Jobs) acceptAgain(ctx context.Context, id string) error {
	j, set, err := s.getOpen(ctx, id)
	if err != nil || j.Status != job.Pending {
		return err
	}
	return s.dispatcher.Dispatch(ctx, j, openEntry(j, set))
}

var errRecorded = errors.New("the job is recorded")

// record writes a job's items, sets its holds, and returns the set of open jobs that contains it.
//
// Errors: errRecorded; fault.Limited if the sets are full of open jobs; fault.Exhausted.
func (s *Jobs) record(ctx context.Context, j *job.Job, limit int, claims []budget.Claim) (set int, err error) {
	j.Holds = holdsOf(claims)
	for {
		at, err := s.findSpot(ctx, *j, limit)
		if err != nil {
			return 0, err
		}
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
		for i, c := range claims {
			if !refusal.failed[claimWrite+i] {
				continue
			}
			if err := s.budgets.retake(ctx, c, s.now()); err != nil {
				return 0, err
			}
		}
		// Other callers may have filled the set, so choose again after a wait.
		if !clock.Wait(ctx, rand.N(conflictWait)) {
			return 0, ctx.Err()
		}
	}
}

// claimWrite is the index of the first claim's write within an acceptance.
const claimWrite = 3

// acceptance returns the writes that accept a job. Writes with conditions come first.
func (s *Jobs) acceptance(j job.Job, at spot, claims []budget.Claim) ([]types.TransactWriteItem, error) {
	record, request, err := jobItems(j)
	if err != nil {
		return nil, err
	}
	if at.set > 0 {
		record[openSetAttribute] = number(int64(at.set))
	}
	writes := []types.TransactWriteItem{
		{Put: &types.Put{
			TableName: &s.table, Item: record,
			ConditionExpression: aws.String("attribute_not_exists(#id)"), ExpressionAttributeNames: named("id"),
		}},
		{Put: &types.Put{TableName: &s.table, Item: request}},
		{Update: s.addOpen(j, at)},
	}
	if len(claims) > 0 {
		writes = append(writes, s.budgets.claimWrites(claims)...)
	}
	for _, h := range j.Holds {
		writes = append(writes, s.budgets.noteHold(j, h))
	}
	return append(writes, s.count(j, 1)...), nil
}

func (s *Jobs) addOpen(j job.Job, at spot) *types.Update {
	open := openEntry(j, at.set)
	return &types.Update{
		TableName: &s.table, Key: jobKey(open.Set, OpenPart),
		UpdateExpression:         aws.String("ADD #open :job SET #ttl = :ttl"),
		ConditionExpression:      aws.String("attribute_not_exists(#open) OR size(#open) < :capacity"),
		ExpressionAttributeNames: named("open", "ttl"),
		ExpressionAttributeValues: item{
			":job": texts(open.Element), ":capacity": number(int64(at.capacity)), ":ttl": seconds(j.Deadline.Add(openAge)),
		},
	}
}

func (s *Jobs) withdraw(ctx context.Context, j job.Job, set int) error {
	back := s.count(j, -1)
	for _, h := range budget.Settle(j.Holds, budget.Amounts{}) {
		back = append(back, s.budgets.settleHold(j.ID, h)...)
	}
	open, free := openEntry(j, set), FreeOpen()
	err := transact(ctx, s.client, append(back, []types.TransactWriteItem{
		{Delete: &types.Delete{
			TableName: &s.table, Key: jobKey(j.ID, RecordPart),
			ConditionExpression:       aws.String("#status = :pending AND attribute_not_exists(#started_at)"),
			ExpressionAttributeNames:  named("status", "started_at"),
			ExpressionAttributeValues: item{":pending": text(string(job.Pending))},
		}},
		{Delete: &types.Delete{TableName: &s.table, Key: jobKey(j.ID, requestPart)}},
		{Update: &types.Update{
			TableName: &s.table, Key: jobKey(open.Set, OpenPart), UpdateExpression: &free.Update,
			ExpressionAttributeNames: free.Names, ExpressionAttributeValues: item{":ended": texts(open.Element)},
		}},
	}...))
	if refused(err) != nil {
		return nil // a worker has already started it
	}
	if err != nil {
		return fmt.Errorf("withdraw job %s: %w", j.ID, err)
	}
	return nil
}

func (s *Jobs) Expire(ctx context.Context, id string, now time.Time) (job.Job, error) {
	j, err := s.get(ctx, id)
	if err != nil {
		return job.Job{}, storeError("expire a job", err)
	}
	body, err := encoded(j.LateFailure())
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
	j, set, err := s.getOpen(ctx, id)
	if err == nil && refusing == nil {
		err = errors.Join(s.settle(ctx, j), s.FreeOpen(ctx, openEntry(j, set)))
	}
	return j, storeError("expire a job", err)
}

// Complete also records the run time for the lane.
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
