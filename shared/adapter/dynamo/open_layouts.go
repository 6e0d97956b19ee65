package dynamo

import (
	"context"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"cutroom/shared/domain/job"
)

// Keys of an account may have different limits of open jobs, or none, and all of its jobs count
// under each. Then there are jobs in sets of which a limit knows nothing, and more in its own than
// it gives them. So an account's first set says which limits its keys add under, and until when:
// who has another counts all sets before a job is added, and the transaction holds its limit for
// what is left (openLimit.rooms). However many are added at once under one limit, there are no
// more than it allows. What other keys add between that count and the transaction comes on top;
// and where a backlog is estimated, what they add within toldFor after their first.

const (
	// limitPrefix is the prefix of the attributes of a first set that have a limit in their name,
	// and the time until which keys add under it. They go with the set.
	limitPrefix = "limit_"
	// quietLimit is the highest limit that the first set does not tell: no limit of several sets
	// gives the first of them less, so this one never has more than they expect.
	quietLimit = setRoom / 2
	// outlives is for how long after a layout was in use there may be jobs in its sets.
	outlives = job.MaxAge + clockSlack
	// toldFor is how long a process relies on what the first set told it, where it does not read
	// all sets each time.
	toldFor = 5 * time.Second
)

// limits returns the limits that a first set tells, and until when each is in use.
func (r *reader) limits() (limits map[int]time.Time) {
	for name := range r.item {
		told, is := strings.CutPrefix(name, limitPrefix)
		if limit, err := strconv.Atoi(told); is && err == nil && limit > 0 {
			if limits == nil {
				limits = map[int]time.Time{}
			}
			limits[limit] = r.moment(name)
		}
	}
	return limits
}

// learn remembers what the first set of an account says.
func (s *Jobs) learn(account string, first openSet) {
	if first.wide.IsZero() && len(first.limits) == 0 {
		return
	}
	now := s.now()
	s.widths.change(account, func(known *width) {
		if first.wide.After(known.until) {
			known.until = first.wide
		}
		limits := map[int]time.Time{}
		maps.Copy(limits, known.limits) // others may be reading it
		for limit, until := range first.limits {
			if now.Before(until.Add(outlives)) && until.After(limits[limit]) {
				limits[limit] = until
			}
		}
		known.limits = limits
	})
}

// told notes that the first set of an account was read, and isTold reports whether that was
// within toldFor.
func (s *Jobs) told(account string) {
	now := s.now()
	s.widths.change(account, func(known *width) { known.told = now })
}

func (s *Jobs) isTold(account string) bool {
	return s.now().Sub(s.widths.of(account).told).Abs() < toldFor
}

// layouts returns the limits of an account's other keys, none of which is the same, as far as this
// process knows them: those under which there are jobs.
func (s *Jobs) layouts(account string, limit openLimit) (others []openLimit) {
	known, since := s.widths.of(account), s.now().Add(-outlives)
	if !limit.none && since.Before(known.until) {
		others = append(others, wideLimit(false))
	}
	for other, until := range known.limits {
		if (limit.none || other != limit.jobs) && since.Before(until) {
			others = append(others, openLimitOf(other))
		}
	}
	return others
}

// reach returns in how many sets an account may have jobs, one of whose keys has the limit.
func (s *Jobs) reach(account string, limit openLimit) int {
	reach := limit.sets
	if limit.none && s.outlived(account) {
		reach = max(reach, wideSets)
	}
	for _, other := range s.layouts(account, limit) {
		reach = max(reach, other.sets)
	}
	return reach
}

// isMixed reports whether other keys may have added to sets beyond those of a limit, or more to
// these than it gives them.
func (s *Jobs) isMixed(account string, limit openLimit) bool {
	for _, other := range s.layouts(account, limit) {
		if !limit.none && other.oversteps(limit) {
			return true
		}
	}
	return false
}

// oversteps reports whether what is added under a limit may be too much for the sets of another.
func (l openLimit) oversteps(other openLimit) bool {
	for set := range l.sets {
		if set >= other.sets || other.sets > 1 && l.room(set) > other.room(set) {
			return true
		}
	}
	return false
}

// isUneven reports whether an account's sets may differ from each other, beside the first.
func (s *Jobs) isUneven(account string, limit openLimit) bool {
	for _, other := range s.layouts(account, limit) {
		if other.sets > 1 && other.sets != limit.sets {
			return true
		}
	}
	return false
}

// tellLimit makes the first set of an account tell that a key adds under the limit, before it
// does. It is one write in wideFor/2, unless another process has made it.
func (s *Jobs) tellLimit(ctx context.Context, account string, limit openLimit) error {
	now := s.now()
	known := s.widths.of(account).limits[limit.jobs]
	if limit.none || limit.jobs <= quietLimit || known.Sub(now) >= wideFor/2 {
		return nil
	}
	name, until := limitPrefix+strconv.Itoa(limit.jobs), now.Add(wideFor)
	_, err := s.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &s.table, Key: openKey(account, 0),
		UpdateExpression: aws.String("SET #limit = :until, #ttl = :ttl"),
		// A later end stays, as clocks differ.
		ConditionExpression:      aws.String("attribute_not_exists(#limit) OR #limit < :until"),
		ExpressionAttributeNames: map[string]string{"#limit": name, "#ttl": ttlAttribute},
		ExpressionAttributeValues: item{
			":until": moment(until), ":ttl": seconds(now.Add(job.MaxAge + openAge)),
		},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	told := openSet{limits: map[int]time.Time{limit.jobs: until}}
	if old, failed := conditionFailed(err); failed {
		told, err = readOpenSet(old)
	}
	if err != nil {
		if now.Before(known) {
			return nil // the next one tries again
		}
		return err
	}
	s.learn(account, told)
	return nil
}
