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
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
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
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	state, err := s.lane(ctx, lane)
	return state.runs, storeError("read run times", err)
}

// Own counts the open jobs of an account on a lane before and after one of them: one read
// of the set that has the job. Where there are several, the others are taken to be alike.
//
// Errors: fault.Unavailable.
func (s *Jobs) Own(ctx context.Context, j job.Job, limit int) (own job.Own, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	of := s.limitOf(j.Account, limit)
	// A moment old will do.
	found, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &s.table, Key: openKey(j.Account, of.first(j.ID)),
	})
	if err != nil {
		return job.Own{}, storeError("read an account's open jobs", err)
	}
	set, err := readOpenSet(found.Item)
	if err != nil {
		return job.Own{}, storeError("read an account's open jobs", err)
	}
	sets := of.sets
	if s.hasWide(j.Account, set) {
		sets = max(sets, wideSets)
	}
	for _, element := range set.elements {
		open := readOpenJob(element)
		switch {
		case open.lane != j.Lane:
		case open.id < j.ID:
			own.Before += sets
		case open.id > j.ID:
			own.After += sets
		}
	}
	return own, nil
}
