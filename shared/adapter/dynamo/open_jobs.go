package dynamo

import (
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"cutroom/shared/domain/job"
)

// An account's open jobs are sets of ids: one, or several where its limit is high, because
// each write of a set costs as much as the set is large, and one partition takes a thousand
// units a second. The sets share the limit out among themselves, so that it is exact. The
// transaction that records a job adds it to a set; the worker that completes it removes it
// afterwards. The state machine, which ends the others, does not: one more state transition
// for each job would cost more than all other calls of a job together. So a set is never too
// small, and a set that looks full is compared with the records of its jobs.

// openJob is an element of the set.
type openJob struct {
	lane job.Lane
	id   string
}

// String returns the element as it is stored.
func (o openJob) String() string { return string(o.lane) + "/" + o.id }

func readOpenJob(stored string) openJob {
	lane, id, _ := strings.Cut(stored, "/")
	return openJob{job.Lane(lane), id}
}

const (
	// openAge is how long after the deadline of an account's last job its set
	// of open jobs is deleted.
	openAge = 24 * time.Hour
	// itemsAtOnce is how many items DynamoDB reads at once at most.
	itemsAtOnce = 100
)

const (
	// setRoom is how many ids a set has at most where there are several: about 9 KB.
	setRoom = 250
	// openSetAttribute is the attribute of a record with the number of the set that has the
	// job, missing for 0.
	openSetAttribute = "open_set"
	// usageAttribute is the attribute of a record with how many shards the usage of its
	// account had when the job was accepted, missing for usageShards.
	usageAttribute = "usage_shards"
)

// openLimit is how many open jobs an account may have, and over how many sets they are
// spread.
type openLimit struct{ jobs, sets int }

// openLimitOf returns the limit that holds for an account whose tier says so. Who has none
// has one set: a lower limit finds there what was accepted under none. Jobs that were
// accepted under a limit of more sets are not counted under one of fewer; within job.MaxAge
// of such a change they have ended.
func openLimitOf(limit int) openLimit {
	if limit <= 0 {
		return openLimit{maxOpen, 1}
	}
	limit = min(limit, mostOpen)
	return openLimit{limit, (limit + setRoom - 1) / setRoom}
}

// room returns how many of the limit are those of a set.
func (l openLimit) room(set int) int {
	room := l.jobs / l.sets
	if set < l.jobs%l.sets {
		room++
	}
	return room
}

// first returns the set that a job is tried in first.
func (l openLimit) first(id string) int {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(id)) // a hash never fails
	return int(hash.Sum32() % uint32(l.sets))
}

// openKey returns the key of a set.
func openKey(account string, set int) item {
	if set == 0 {
		return jobKey("account#"+account, "open")
	}
	// No account has the character in its name.
	return jobKey(fmt.Sprintf("account#%s#%d", account, set), "open")
}

// openSet reads a set.
func (s *Jobs) openSet(ctx context.Context, account string, set int) ([]string, error) {
	found, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &s.table, Key: openKey(account, set), ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return nil, err
	}
	return elementsOf(found.Item), nil
}

func elementsOf(i item) []string {
	set, _ := i["open"].(*types.AttributeValueMemberSS)
	if set == nil {
		return nil
	}
	return set.Value
}

// allOpen reads the sets of an account with the limit, without a look at the records.
func (s *Jobs) allOpen(ctx context.Context, account string, limit openLimit) (sets [][]string, err error) {
	n := limit.sets
	sets = make([][]string, n)
	if n == 1 {
		sets[0], err = s.openSet(ctx, account, 0)
		return sets, err
	}
	keys, places := make([]item, n), map[string]int{}
	for set := range n {
		keys[set] = openKey(account, set)
		places[(&reader{item: keys[set]}).text("id")] = set
	}
	found, err := s.items(ctx, keys)
	for _, i := range found {
		sets[places[(&reader{item: i}).text("id")]] = elementsOf(i)
	}
	return sets, err
}

const (
	// setsRead is how many sets an account may have of which all are read to count its jobs.
	// Of one with more, setsSampled are read.
	setsRead, setsSampled = 8, 4
	// surely is by how many standard deviations of what was counted in a sample the count is
	// raised, so that it is hardly ever too low.
	surely = 4
)

// sampleOpen estimates how many open jobs an account has on a lane, from some of its sets: the
// mean, and what they hardly exceed; and likewise what those on all lanes do. Jobs are spread
// over sets by their ids.
func (s *Jobs) sampleOpen(
	ctx context.Context, lane job.Lane, account string, limit openLimit,
) (mean, most, all int, err error) {
	first := int(s.samples.Add(1)) * setsSampled
	keys := make([]item, setsSampled)
	for i := range keys {
		keys[i] = openKey(account, (first+i)%limit.sets)
	}
	// A moment old will do for an estimate.
	found, err := readAsked(ctx, s.client, s.table, types.KeysAndAttributes{Keys: keys})
	if err != nil {
		return 0, 0, 0, err
	}
	var sets [][]string
	for _, i := range found {
		sets = append(sets, elementsOf(i))
	}
	inAll, onLane := countOpen(sets, lane)
	scaled := func(count float64) int { return int(math.Ceil(count * float64(limit.sets) / setsSampled)) }
	raised := func(count int) int { return scaled(float64(count) + surely*math.Sqrt(float64(count)+1)) }
	return scaled(float64(onLane)), raised(onLane), raised(inAll), nil
}

// freeEnded removes from a set the jobs that have ended, and returns the others.
func (s *Jobs) freeEnded(ctx context.Context, account string, set int, elements []string) (open []string, err error) {
	var ended []string
	for rest := elements; len(rest) > 0; rest = rest[min(itemsAtOnce, len(rest)):] {
		part := rest[:min(itemsAtOnce, len(rest))]
		isOpen, err := s.areOpen(ctx, part)
		if err != nil {
			return nil, err
		}
		for _, element := range part {
			if isOpen[readOpenJob(element).id] {
				open = append(open, element)
			} else {
				ended = append(ended, element)
			}
		}
	}
	if len(ended) > 0 {
		// A job that has ended stays ended, so the removal needs no condition.
		err = s.freeAll(ctx, account, set, ended)
	}
	return open, err
}

// findRoom returns the set with the most room after the jobs that have ended are out of
// all of them.
//
// Errors: fault.Limited if there is none.
func (s *Jobs) findRoom(ctx context.Context, account string, limit openLimit) (set int, err error) {
	sets, err := s.allOpen(ctx, account, limit)
	if err != nil {
		return 0, err
	}
	most := 0
	for i, elements := range sets {
		if elements, err = s.freeEnded(ctx, account, i, elements); err != nil {
			return 0, err
		}
		if room := limit.room(i) - len(elements); room > most {
			set, most = i, room
		}
	}
	if most == 0 {
		return 0, job.TooManyOpen(limit.jobs)
	}
	return set, nil
}

// areOpen returns which of the jobs, at most itemsAtOnce, have not ended. A job past its
// deadline has ended, whether or not that is recorded; so has one without a record,
// which was withdrawn.
func (s *Jobs) areOpen(ctx context.Context, elements []string) (map[string]bool, error) {
	keys := make([]item, 0, len(elements))
	for _, element := range elements {
		keys = append(keys, jobKey(readOpenJob(element).id, RecordPart))
	}
	records, err := s.items(ctx, keys, "id", "status", "deadline")
	if err != nil {
		return nil, err
	}
	isOpen := map[string]bool{}
	for _, record := range records {
		r := reader{item: record}
		id, status := r.text("id"), job.Status(r.text("status"))
		deadline, err := readTime(r.text("deadline"))
		if err != nil {
			return nil, err
		}
		isOpen[id] = !status.Terminal() && s.now().Before(deadline)
	}
	return isOpen, nil
}

// free removes a job that has ended from the set that has it.
func (r *Runs) free(ctx context.Context, j job.Job, set int) error {
	return r.freeAll(ctx, j.Account, set, []string{openJob{j.Lane, j.ID}.String()})
}

func (r *Runs) freeAll(ctx context.Context, account string, set int, elements []string) error {
	_, err := r.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &r.table, Key: openKey(account, set),
		UpdateExpression:         aws.String("DELETE #open :ended"),
		ExpressionAttributeNames: named("open"), ExpressionAttributeValues: item{":ended": texts(elements...)},
	})
	return err
}

func texts(all ...string) types.AttributeValue { return &types.AttributeValueMemberSS{Value: all} }
