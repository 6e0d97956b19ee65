package dynamo

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"cutroom/shared/domain/job"
)

var (
	_ job.Lines    = (*Jobs)(nil)
	_ job.RunTimes = (*Jobs)(nil)
)

// Line returns the line of a lane: one call of the queue and one read, or none within
// laneStateFor. The queue tells
// nothing about accounts.
//
// Errors: fault.Unavailable.
func (s *Jobs) Line(ctx context.Context, lane job.Lane) (line job.Line, err error) {
	if line.Waiting, line.Running, err = s.lengths.Depth(ctx, lane); err != nil {
		return job.Line{}, err
	}
	state, err := s.lane(ctx, lane)
	line.Runs = state.runs
	return line, storeError("read a line", err)
}

// RunTimes returns the run times of a lane, as they were within laneStateFor.
//
// Errors: fault.Unavailable.
func (s *Jobs) RunTimes(ctx context.Context, lane job.Lane) ([]job.RunTime, error) {
	state, err := s.lane(ctx, lane)
	return state.runs, storeError("read run times", err)
}

// Own counts the open jobs of an account on a lane before and after one of them: one read
// of the set that has the job. Where a limit has several, the others are taken to be alike. The
// first may have more than they where an account was not always wide, or where other keys have
// fewer sets: then it is read, and one of the others.
//
// Errors: fault.Unavailable.
func (s *Jobs) Own(ctx context.Context, j job.Job, limit int) (own job.Own, err error) {
	of := s.limitOf(j.Account, limit)
	alike := func() bool { return !s.outlived(j.Account) && len(s.layouts(j.Account, of)) == 0 }
	if alike() {
		number := of.first(j.ID)
		set, err := s.glance(ctx, j.Account, number)
		if err != nil {
			return job.Own{}, storeError("read an account's open jobs", err)
		}
		if number == 0 {
			s.learn(j.Account, set)
		}
		if alike() {
			return set.own(j, of.sets), nil
		}
	}
	first, err := s.glance(ctx, j.Account, 0)
	if err != nil {
		return job.Own{}, storeError("read an account's open jobs", err)
	}
	others := s.reach(j.Account, of) - 1
	if others == 0 {
		return first.own(j, 1), nil
	}
	other, err := s.glance(ctx, j.Account, 1+int(hashOf(j.ID)%uint32(others)))
	if err != nil {
		return job.Own{}, storeError("read an account's open jobs", err)
	}
	own, rest := first.own(j, 1), other.own(j, others)
	return job.Own{Before: own.Before + rest.Before, After: own.After + rest.After}, nil
}

// glance reads a set as it was a moment ago.
func (s *Jobs) glance(ctx context.Context, account string, set int) (openSet, error) {
	found, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &s.table, Key: openKey(account, set)})
	if err != nil {
		return openSet{}, err
	}
	return readOpenSet(found.Item)
}

// own counts the jobs in a set that are on a job's lane before it and after it, so many times.
func (o openSet) own(j job.Job, times int) (own job.Own) {
	for _, element := range o.elements {
		open := readOpenJob(element)
		switch {
		case open.lane != j.Lane:
		case open.id < j.ID:
			own.Before += times
		case open.id > j.ID:
			own.After += times
		}
	}
	return own
}
