package dynamo

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"cutroom/shared/domain/job"
)

// An account's open jobs are stored as eight sets of ids, because the cost of a write grows with the size of the
// set. The limit is divided among the sets, so it stays exact. The transaction that records a job adds it to a
// set. The process that completes or cancels the job then removes it from the set. The state machine removes jobs
// that it fails. If a process crashes between the two writes, dropEnded removes the job later.

const (
	openSets = 8
	maxOpen  = 5000
	OpenPart = "open"
	// openSetAttribute is missing if the set is 0.
	openSetAttribute = "open_set"
	// openAge is how long an account's set is kept after the deadline of its last job.
	openAge = 24 * time.Hour
	// itemsAtOnce is DynamoDB's limit on the number of items in one call.
	itemsAtOnce = 100
	// compareEvery is the minimum interval at which a process compares sets with records.
	compareEvery = 10 * time.Second
)

type OpenEntry struct {
	// Set is the id of the set's item; its sort key is OpenPart. Element is the job's element in the set.
	Set, Element string
}

func openEntry(j job.Job, set int) OpenEntry {
	return OpenEntry{Set: openID(j.Account, set), Element: openJob{j.Lane, j.ID}.String()}
}

// FreeOpen returns the write that removes a job from its set. The writer adds ":ended", a set that
// contains the job's element. The write needs no condition, because repeating it changes nothing.
func FreeOpen() JobEnd { return JobEnd{Update: "DELETE #open :ended", Names: named("open")} }

func (r *Runs) FreeOpen(ctx context.Context, e OpenEntry) error {
	return storeError("remove an open job", r.freeOpen(ctx, e.Set, e.Element))
}

func (r *Runs) freeOpen(ctx context.Context, set string, elements ...string) error {
	free := FreeOpen()
	_, err := r.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &r.table, Key: jobKey(set, OpenPart), UpdateExpression: &free.Update,
		ExpressionAttributeNames: free.Names, ExpressionAttributeValues: item{":ended": texts(elements...)},
	})
	return err
}

type openJob struct {
	lane job.Lane
	id   string
}

func (o openJob) String() string { return string(o.lane) + "/" + o.id }

func readOpenJob(stored string) openJob {
	lane, id, _ := strings.Cut(stored, "/")
	return openJob{job.Lane(lane), id}
}

// Account names do not contain "#", so ids do not collide.
func openID(account string, set int) string {
	if set == 0 {
		return "account#" + account
	}
	return fmt.Sprintf("account#%s#%d", account, set)
}

// openLimit converts a tier's limit, where 0 means no limit.
func openLimit(limit int) int {
	if limit <= 0 {
		return maxOpen
	}
	return min(limit, maxOpen)
}

func portionOf(all, among, index int) int {
	portion := all / among
	if index < all%among {
		portion++
	}
	return portion
}

// capacities returns how many jobs each set may contain. If a key with a higher limit has filled a
// set beyond its portion, the portions of the other sets shrink. Adding jobs within the capacities
// does not change them, so concurrent callers together never exceed the limit.
func capacities(limit int, sets [][]string) []int {
	capacity, over := make([]int, len(sets)), make([]bool, len(sets))
	left, among := limit, len(sets)
	for {
		before, index := among, 0
		for i := range capacity {
			if capacity[i] = 0; !over[i] {
				capacity[i] = portionOf(left, before, index)
				index++
			}
		}
		for i, set := range sets {
			if !over[i] && len(set) > capacity[i] {
				over[i], left, among = true, left-len(set), among-1
			}
		}
		if among == before || among == 0 {
			return capacity
		}
	}
}

type spot struct{ set, capacity int }

// findSpot returns the set selected by the job's id or, if that is full, the set with the most capacity left.
//
// Errors: errRecorded; fault.Limited if all sets are full.
func (s *Jobs) findSpot(ctx context.Context, j job.Job, limit int) (spot, error) {
	sets, err := s.openSets(ctx, j.Account, true)
	if err != nil {
		return spot{}, err
	}
	capacity := capacities(openLimit(limit), sets)
	free := func(set int) int { return capacity[set] - len(sets[set]) }
	at := int(hashOf(j.ID) % openSets)
	if free(at) <= 0 {
		for set := range sets {
			if free(set) > free(at) {
				at = set
			}
		}
	}
	if free(at) > 0 {
		return spot{at, capacity[at]}, nil
	}
	recorded, err := readItems(ctx, s.client, s.table, []item{jobKey(j.ID, RecordPart)}, "id")
	switch {
	case err != nil:
		return spot{}, err
	case len(recorded) > 0:
		return spot{}, errRecorded
	}
	return spot{}, job.TooManyOpen(openLimit(limit))
}

// openSets returns the account's sets and removes jobs that ended long ago from them.
func (s *Jobs) openSets(ctx context.Context, account string, consistent bool) ([][]string, error) {
	sets, err := s.readOpen(ctx, account, consistent)
	if err != nil {
		return nil, err
	}
	return sets, s.dropEnded(ctx, account, sets)
}

func (s *Jobs) readOpen(ctx context.Context, account string, consistent bool) ([][]string, error) {
	sets, keys, numbers := make([][]string, openSets), make([]item, openSets), map[string]int{}
	for set := range sets {
		id := openID(account, set)
		keys[set], numbers[id] = jobKey(id, OpenPart), set
	}
	found, err := readAsked(ctx, s.client, s.table, types.KeysAndAttributes{Keys: keys, ConsistentRead: &consistent})
	for _, i := range found {
		if elements, there := i["open"].(*types.AttributeValueMemberSS); there {
			sets[numbers[(&reader{item: i}).text("id")]] = elements.Value
		}
	}
	return sets, err
}

type comparisons struct {
	mu   sync.Mutex
	last time.Time
}

func (c *comparisons) due(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.last.IsZero() && now.Sub(c.last).Abs() < compareEvery {
		return false
	}
	c.last = now
	return true
}

// dropEnded removes ended jobs from the sets. It checks jobs whose ids are so old that they should have ended. An
// id is generated when an upload starts, so only the record shows whether the job has ended.
func (s *Jobs) dropEnded(ctx context.Context, account string, sets [][]string) error {
	now := s.now()
	old := map[string]bool{}
	var keys []item
	for _, set := range sets {
		for _, element := range set {
			id := readOpenJob(element).id
			if len(keys) < itemsAtOnce && !now.Before(job.IDTime(id).Add(job.MaxAge)) {
				old[id], keys = true, append(keys, jobKey(id, RecordPart))
			}
		}
	}
	if len(keys) == 0 || !s.comparisons.due(now) {
		return nil
	}
	records, err := readItems(ctx, s.client, s.table, keys, "id", "status", "deadline")
	if err != nil {
		return err
	}
	for _, record := range records {
		r := reader{item: record}
		deadline, err := readTime(r.text("deadline"))
		if err != nil {
			return err
		}
		if !job.Status(r.text("status")).Terminal() && now.Before(deadline) {
			delete(old, r.text("id"))
		}
	}
	for set, elements := range sets {
		var ended, left []string
		for _, element := range elements {
			if old[readOpenJob(element).id] {
				ended = append(ended, element)
			} else {
				left = append(left, element)
			}
		}
		if len(ended) == 0 {
			continue
		}
		if err := s.freeOpen(ctx, openID(account, set), ended...); err != nil {
			return err
		}
		sets[set] = left
	}
	return nil
}

// Backlog may lag by a second, but Accept is exact. The run times and the number of workers are at most laneStateFor
// old.
func (s *Jobs) Backlog(ctx context.Context, lane job.Lane, account string) (job.Backlog, error) {
	var (
		backlog job.Backlog
		err     error
	)
	if backlog.Jobs, err = s.lengths.Length(ctx, lane); err != nil {
		return job.Backlog{}, err
	}
	state, err := s.lane(ctx, lane)
	if err != nil {
		return job.Backlog{}, storeError("read the backlog", err)
	}
	backlog.Fleet = state.fleet
	backlog.SetRuns(state.runs, account, s.now())
	sets, err := s.openSets(ctx, account, false)
	if err != nil {
		return job.Backlog{}, storeError("read the backlog", err)
	}
	for _, set := range sets {
		backlog.AccountOpen += len(set)
		for _, element := range set {
			if readOpenJob(element).lane == lane {
				backlog.AccountJobs++
			}
		}
	}
	backlog.Jobs = max(backlog.Jobs, backlog.AccountJobs)
	return backlog, nil
}

func texts(all ...string) types.AttributeValue { return &types.AttributeValueMemberSS{Value: all} }
