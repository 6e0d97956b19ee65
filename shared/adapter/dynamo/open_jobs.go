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

	"cutroom/shared/domain/fault"
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
)

// openLimit is how many open jobs an account may have, and over how many sets they are
// spread.
type openLimit struct {
	jobs, sets int
	// none says that its tier sets no limit, and quiet that one without a limit has not so
	// many open jobs that the index is to be spread for it (see widths).
	none, quiet bool
}

// openLimitOf returns the limit that holds for an account whose tier says so; of who has none
// Jobs.limitOf tells more.
func openLimitOf(limit int) openLimit {
	if limit <= 0 {
		return openLimit{jobs: maxOpen, sets: 1, none: true}
	}
	limit = min(limit, mostOpen)
	return openLimit{jobs: limit, sets: (limit + setRoom - 1) / setRoom}
}

// narrow reports whether there is one set because there is no limit.
func (l openLimit) narrow() bool { return l.none && l.sets == 1 }

// room returns how many of the limit are those of a set where no other key of the account has
// more sets.
func (l openLimit) room(set int) int {
	if l.narrow() {
		return narrowRoom
	}
	return shareOf(l.jobs, l.sets, set)
}

// shareOf returns what the one at an index gets of a number that so many share out.
func shareOf(all, among, index int) int {
	share := all / among
	if index < all%among {
		share++
	}
	return share
}

// rooms returns how many ids each of the limit's sets may have, fewer where it has too many: of the
// limit less what is in the other sets, an equal part, and where some have more than that, an
// equal part of what they leave. What is added to a set within its room changes none of them, so
// whoever adds by them at once adds as many as the limit allows.
func (l openLimit) rooms(sets []openSet) []int {
	rooms, over := make([]int, l.sets), make([]bool, l.sets)
	left, among := l.jobs-countIn(sets[l.sets:], "").all, l.sets
	for {
		before, index := among, 0
		for i := range rooms {
			if rooms[i] = 0; !over[i] {
				rooms[i] = shareOf(left, before, index)
				index++
			}
		}
		for i, set := range sets[:l.sets] {
			if has := len(set.elements); !over[i] && has > rooms[i] {
				over[i], left, among = true, left-has, among-1
			}
		}
		if among == before || among == 0 {
			return rooms
		}
	}
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
	// wide and limits are of the first set, see widths.
	wide   time.Time
	limits map[int]time.Time
}

func readOpenSet(i item) (openSet, error) {
	r := reader{item: i}
	set := openSet{believed: r.moment(believedAttribute), wide: r.moment(wideAttribute), limits: r.limits()}
	if elements, there := i["open"].(*types.AttributeValueMemberSS); there {
		set.elements = elements.Value
	}
	return set, r.err
}

// allOpen reads the sets of an account with the limit, without a look at the records. Where
// other keys of the account have more sets, those are the last.
func (s *Jobs) allOpen(ctx context.Context, account string, limit openLimit) ([]openSet, error) {
	known := s.reach(account, limit)
	sets, err := s.openSets(ctx, account, 0, known)
	if err != nil {
		return nil, err
	}
	s.learn(account, sets[0])
	reach := s.reach(account, limit)
	if reach <= known {
		return sets, nil
	}
	more, err := s.openSets(ctx, account, known, reach)
	return append(sets, more...), err
}

// openSets reads the sets of an account from a number to another, which is left out.
func (s *Jobs) openSets(ctx context.Context, account string, from, to int) (sets []openSet, err error) {
	sets = make([]openSet, to-from)
	if len(sets) == 1 {
		found, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{
			TableName: &s.table, Key: openKey(account, from), ConsistentRead: aws.Bool(true),
		})
		if err != nil {
			return nil, err
		}
		sets[0], err = readOpenSet(found.Item)
		return sets, err
	}
	keys, places := make([]item, len(sets)), map[string]int{}
	for i := range sets {
		keys[i] = openKey(account, from+i)
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

// spot is a set that a job is tried in, and how many ids that may have.
type spot struct {
	set, room int
	// unlessWide is the time since which the account must not have been wide, zero where all
	// of its sets were counted for the room, or need not be.
	unlessWide time.Time
}

// firstSpot returns where a job is tried first. Where other keys of its account do not keep to the
// sets of its limit, all are counted before. A process knows that by the backlog, which is read
// before a job is accepted; that an account is wide its first set tells too.
//
// Errors: errRecorded; fault.Limited if there is no room.
func (s *Jobs) firstSpot(ctx context.Context, j job.Job, limit openLimit) (spot, error) {
	if err := s.tellLimit(ctx, j.Account, limit); err != nil {
		return spot{}, err
	}
	if s.isMixed(j.Account, limit) {
		at, _, err := s.findRoom(ctx, j, limit)
		if fault.Is(err, fault.Limited) {
			return at, s.unlessRecorded(ctx, j.ID, err)
		}
		return at, err
	}
	at := limit.spot(j.ID)
	if at.set == 0 && !limit.none {
		at.unlessWide = s.now().Add(-outlives)
	}
	return at, nil
}

// unlessRecorded returns a refusal of a job, or errRecorded if that was accepted before.
func (s *Jobs) unlessRecorded(ctx context.Context, id string, refusal error) error {
	found, err := s.items(ctx, []item{jobKey(id, RecordPart)}, "id")
	switch {
	case err != nil:
		return err
	case len(found) > 0:
		return errRecorded
	}
	return refusal
}

// spot returns where a job is tried by its id alone.
func (l openLimit) spot(id string) spot {
	set := l.first(id)
	return spot{set: set, room: l.room(set)}
}

// findRoom returns a set with room, and the limit by which it is one: where all sets look full,
// after the jobs that have ended are out of them.
//
// Errors: fault.Limited if there is none.
func (s *Jobs) findRoom(ctx context.Context, j job.Job, limit openLimit) (spot, openLimit, error) {
	sets, err := s.allOpen(ctx, j.Account, limit)
	if err != nil {
		return spot{}, limit, err
	}
	if limit.narrow() {
		return s.findWidth(ctx, j, limit, sets)
	}
	at, there := limit.roomIn(sets, j.ID)
	if there {
		return at, limit, nil
	}
	if sets, err = s.freeEnded(ctx, j.Account, sets); err != nil {
		return spot{}, limit, err
	}
	if at, there = limit.roomIn(sets, j.ID); !there {
		return spot{}, limit, job.TooManyOpen(limit.jobs)
	}
	return at, limit, nil
}

// roomIn returns which of the limit's sets has room for a job: that of its id, as all who look at
// once would go to one set otherwise, or the one with the most.
func (l openLimit) roomIn(sets []openSet, id string) (at spot, there bool) {
	rooms, most := l.rooms(sets), 0
	free := func(set int) int { return rooms[set] - len(sets[set].elements) }
	if first := l.first(id); free(first) > 0 {
		return spot{set: first, room: rooms[first]}, true
	}
	for set, room := range rooms {
		if free(set) > most {
			at, most = spot{set: set, room: room}, free(set)
		}
	}
	return at, most > 0
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
