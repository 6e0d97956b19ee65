package dynamo

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"cutroom/shared/domain/job"
)

// laneStateFor is how long a process remembers what is recorded of a lane: it reads it twice
// for each submission, and again for each pending job that is asked for.
const laneStateFor = 5 * time.Second

// laneState is what is recorded of a lane: its last runs, and the workers.
type laneState struct {
	runs []job.RunTime
	// ran are the accounts of the runs that ended within job.OthersFor, as far as they were recorded.
	ran   []string
	fleet job.Fleet
	at    time.Time
}

// laneStates remembers them.
type laneStates struct {
	mu    sync.Mutex
	known map[job.Lane]laneState
}

// forget makes the next read of a lane a real one.
func (l *laneStates) forget(lane job.Lane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.known, lane)
}

// lane returns what is recorded of a lane, as it was within laneStateFor: one call, which is
// not consistent, or none.
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
			values.runTimes(&state, s.now().Add(-job.OthersFor))
		}
		if values.err != nil {
			return laneState{}, values.err
		}
	}
	// What a worker says itself is newer than what was seen of it.
	if s.now().Sub(alive) < WarmFor && !state.fleet.SeenAt.IsZero() {
		state.fleet.Running = max(state.fleet.Running, 1)
	}
	return state, nil
}

// runTimes adds the run times that an item holds, and the accounts of those that ended since.
func (r *reader) runTimes(state *laneState, since time.Time) {
	for name := range r.item {
		place, is := strings.CutPrefix(name, runTimePrefix)
		if !is {
			continue
		}
		state.runs = append(state.runs, job.RunTime{
			Model: r.text(runModelPrefix + place), Took: milliseconds(r.number(name)),
		})
		if account := r.text(runAccountPrefix + place); account != "" && r.moment(runEndPrefix+place).After(since) {
			state.ran = append(state.ran, account)
		}
	}
}

// mean returns the mean of the run times, or 0 if there are none.
func (l laneState) mean() time.Duration {
	var all time.Duration
	for _, run := range l.runs {
		all += run.Took
	}
	return all / time.Duration(max(len(l.runs), 1))
}
