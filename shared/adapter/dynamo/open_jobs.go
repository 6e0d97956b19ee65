package dynamo

import (
	"context"
	"fmt"
	"hash/fnv"
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
// small, and a set that looks full is compared with the records of its jobs (freeEnded).

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

// openSet is a set as it was read.
type openSet struct {
	elements []string
	// believed is until when all of it is taken to be open, see freeEnded.
	believed time.Time
}

func readOpenSet(i item) (openSet, error) {
	r := reader{item: i}
	set := openSet{believed: r.moment(believedAttribute)}
	if elements, there := i["open"].(*types.AttributeValueMemberSS); there {
		set.elements = elements.Value
	}
	return set, r.err
}

// allOpen reads the sets of an account with the limit, without a look at the records.
func (s *Jobs) allOpen(ctx context.Context, account string, limit openLimit) (sets []openSet, err error) {
	sets = make([]openSet, limit.sets)
	if len(sets) == 1 {
		found, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{
			TableName: &s.table, Key: openKey(account, 0), ConsistentRead: aws.Bool(true),
		})
		if err != nil {
			return nil, err
		}
		sets[0], err = readOpenSet(found.Item)
		return sets, err
	}
	keys, places := make([]item, len(sets)), map[string]int{}
	for i := range sets {
		keys[i] = openKey(account, i)
		places[(&reader{item: keys[i]}).text("id")] = i
	}
	found, err := s.items(ctx, keys)
	for _, one := range found {
		if err == nil {
			sets[places[(&reader{item: one}).text("id")]], err = readOpenSet(one)
		}
	}
	return sets, err
}

// findRoom returns the set with the most room: where all sets look full, after the jobs that
// have ended are out of them.
//
// Errors: fault.Limited if there is none.
func (s *Jobs) findRoom(ctx context.Context, account string, limit openLimit) (set int, err error) {
	sets, err := s.allOpen(ctx, account, limit)
	if err != nil {
		return 0, err
	}
	set, there := limit.roomiest(sets)
	if there {
		return set, nil
	}
	for i := range sets {
		if sets[i], err = s.freeEnded(ctx, account, i, sets[i]); err != nil {
			return 0, err
		}
	}
	if set, there = limit.roomiest(sets); !there {
		return 0, job.TooManyOpen(limit.jobs)
	}
	return set, nil
}

// roomiest returns which of the sets has the most room, if one has any.
func (l openLimit) roomiest(sets []openSet) (set int, there bool) {
	most := 0
	for i, one := range sets {
		if room := l.room(i) - len(one.elements); room > most {
			set, most = i, room
		}
	}
	return set, most > 0
}

// free removes a job that has ended from the set that has it.
func (r *Runs) free(ctx context.Context, j job.Job, set int) error {
	_, err := r.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &r.table, Key: openKey(j.Account, set),
		UpdateExpression:          aws.String("DELETE #open :ended"),
		ExpressionAttributeNames:  named("open"),
		ExpressionAttributeValues: item{":ended": texts(openJob{j.Lane, j.ID}.String())},
	})
	return err
}

func texts(all ...string) types.AttributeValue { return &types.AttributeValueMemberSS{Value: all} }
