package dynamo

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"cutroom/shared/domain/job"
)

// laneStateFor is how long a lane's state is cached. Each submission needs it twice.
const laneStateFor = 5 * time.Second

type laneState struct {
	runs  []job.RunTime
	fleet job.Fleet
	at    time.Time
}

type laneStates struct {
	mu    sync.Mutex
	known map[job.Lane]laneState
}

func (l *laneStates) forget(lane job.Lane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.known, lane)
}

// lane returns a state that is at most laneStateFor old. It does not use a consistent read.
func (s *Jobs) lane(ctx context.Context, lane job.Lane) (laneState, error) {
	s.lanes.mu.Lock()
	defer s.lanes.mu.Unlock()
	now := s.now()
	known, ok := s.lanes.known[lane]
	if ok && now.Sub(known.at).Abs() < laneStateFor {
		return known, nil
	}
	state, err := s.readLane(ctx, lane)
	if err != nil {
		return laneState{}, err
	}
	state.at = now
	if s.lanes.known == nil {
		s.lanes.known = map[job.Lane]laneState{}
	}
	s.lanes.known[lane] = state
	return state, nil
}

func (s *Jobs) readLane(ctx context.Context, lane job.Lane) (state laneState, err error) {
	keys := []item{fleetKey(), laneKey(lane, workersPart)}
	for n := range uint32(runTimeItems) {
		keys = append(keys, runTimesKey(lane, n))
	}
	found, err := readAsked(ctx, s.client, s.table, types.KeysAndAttributes{Keys: keys})
	if err != nil {
		return laneState{}, err
	}
	var alive time.Time
	for _, one := range found {
		values := reader{item: one}
		switch values.text("part") {
		case fleetPart:
			state.fleet = values.fleet()
		case workersPart:
			alive = values.moment("seen")
		default:
			values.runTimes(&state, s.now())
		}
		if values.err != nil {
			return laneState{}, values.err
		}
	}
	// The fleet's last check may have missed a worker that has reported more recently.
	if s.now().Sub(alive) < WarmFor && !state.fleet.SeenAt.IsZero() {
		state.fleet.Running = max(state.fleet.Running, 1)
	}
	return state, nil
}

// runTimes adds the run times of jobs that ended within the last runTimeFor.
func (r *reader) runTimes(state *laneState, now time.Time) {
	for name := range r.item {
		place, is := strings.CutPrefix(name, runTimePrefix)
		ended := r.moment(runEndPrefix + place)
		if !is || now.Sub(ended) > runTimeFor {
			continue
		}
		state.runs = append(state.runs, job.RunTime{
			Model: r.text(runModelPrefix + place), Took: milliseconds(r.number(name)),
			Account: r.text(runAccountPrefix + place), Ended: ended,
		})
	}
}

var (
	_ job.Queues   = (*Jobs)(nil)
	_ job.RunTimes = (*Jobs)(nil)
)

// Queue reports no counts by account, because SQS keeps none.
func (s *Jobs) Queue(ctx context.Context, lane job.Lane) (queue job.Queue, err error) {
	if queue.Waiting, queue.Running, err = s.lengths.Depth(ctx, lane); err != nil {
		return job.Queue{}, err
	}
	state, err := s.lane(ctx, lane)
	queue.Runs = state.runs
	return queue, storeError("read the queue of a lane", err)
}

// RunTimes returns run times that are at most laneStateFor old.
func (s *Jobs) RunTimes(ctx context.Context, lane job.Lane) ([]job.RunTime, error) {
	state, err := s.lane(ctx, lane)
	return state.runs, storeError("read run times", err)
}

// Own does not use a consistent read.
func (s *Jobs) Own(ctx context.Context, j job.Job) (own job.Own, err error) {
	sets, err := s.readOpen(ctx, j.Account, false)
	if err != nil {
		return job.Own{}, storeError("read an account's open jobs", err)
	}
	for _, set := range sets {
		for _, element := range set {
			open := readOpenJob(element)
			switch {
			case open.lane != j.Lane:
			case open.id < j.ID:
				own.Before++
			case open.id > j.ID:
				own.After++
			}
		}
	}
	return own, nil
}
