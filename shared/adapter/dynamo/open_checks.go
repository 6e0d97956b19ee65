package dynamo

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"golang.org/x/sync/errgroup"

	"cutroom/shared/domain/job"
)

// What leaves a set by itself, and what does not: a job that completes is removed by who
// completes it, as is one that is cancelled, expired by a read, or failed by the reaper. One
// that the state machine fails stays in its set until somebody compares that with the
// records, and so does one whose removal was cut off. A comparison reads every record, and
// those who are refused at a limit come again at once, so its result is believed for a while
// by all processes: the set says until when. Whatever else is removed or added in between, a
// job that is in the set now was open when it was last compared, or accepted since. So a job
// that the state machine fails keeps its place for believedFor longer at a limit, which is no
// longer than the shortest Retry-After there; and in a set of several reads while one process
// compares it. Nothing else is refused wrongly, as deadlines are known and not believed beyond,
// and nothing is accepted wrongly, as the transaction that adds a job looks at nothing but the
// set.

const (
	// believedFor is how long the result of a comparison is believed.
	believedFor = 2 * time.Second
	// believedFrom is how many jobs an account has of which the result is noted, and
	// believedEach how many a set of it: the write costs as much as five reads for each KB.
	// The jobs of smaller accounts are compared each time.
	believedFrom, believedEach = 25, 5
	// clockSlack is how much the clocks of processes may differ.
	clockSlack = time.Second
	// believedAttribute is the attribute of a set with the time until which it is believed.
	believedAttribute = "believed_until"
)

// beliefs are until when a process believes its own comparisons, which hold by its own clock
// whatever those of others say. Without them processes whose clocks differ by more than
// clockSlack would not believe each other, and compare in turn at each refusal.
type beliefs struct {
	mu    sync.Mutex
	until map[setOf]time.Time
}

// setOf is a set of an account.
type setOf struct {
	account string
	set     int
}

func (b *beliefs) hold(of setOf, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return now.Before(b.until[of])
}

func (b *beliefs) note(of setOf, until time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if until.IsZero() {
		return
	}
	if b.until == nil || len(b.until) >= mostWidths {
		b.until = map[setOf]time.Time{}
	}
	b.until[of] = until
}

// isBelieved reports whether all jobs of a set are taken to be open. A time that lies much
// further ahead was written by a clock that is wrong.
func (o openSet) isBelieved(now time.Time) bool {
	return now.Before(o.believed) && !o.believed.After(now.Add(believedFor+clockSlack))
}

// comparison is that of a set.
type comparison struct {
	number      int
	open, ended []string
	// until is until when what was found is believed, and noted what the set says already.
	until, noted time.Time
}

// freeEnded compares the sets of an account, from the first on, with the records of their jobs,
// removes those that have ended, and returns what is left; of a set that is believed, all. Of
// one that takes several reads one process compares it, and the others believe it meanwhile.
func (s *Jobs) freeEnded(ctx context.Context, account string, sets []openSet) ([]openSet, error) {
	now, all, from := s.now(), 0, believedFrom
	var comparisons []comparison
	var elements []string
	for i, set := range sets {
		all += len(set.elements)
		if len(set.elements) == 0 || set.isBelieved(now) || s.beliefs.hold(setOf{account, i}, now) {
			continue
		}
		c := comparison{number: i, until: now.Add(believedFor).Truncate(time.Millisecond)}
		if len(set.elements) > itemsAtOnce {
			mine, err := s.claimComparison(ctx, account, i, set, c.until)
			if err != nil {
				return nil, err
			}
			if !mine {
				continue
			}
			c.noted = c.until
		}
		comparisons, elements = append(comparisons, c), append(elements, set.elements...)
	}
	deadlines, err := s.deadlines(ctx, elements)
	if err != nil {
		return nil, err
	}
	if all >= believedFrom {
		from = believedEach
	}
	left := slices.Clone(sets)
	writing, within := errgroup.WithContext(ctx)
	writing.SetLimit(writesAtOnce)
	for _, c := range comparisons {
		c.sort(sets[c.number].elements, deadlines, s.now())
		left[c.number].elements = c.open
		if len(c.open) < from && c.noted.IsZero() {
			c.until = c.noted
		}
		writing.Go(func() error {
			if len(c.ended) > 0 || !c.until.Equal(c.noted) {
				if err := s.noteComparison(within, account, c); err != nil {
					return err
				}
			}
			s.beliefs.note(setOf{account, c.number}, c.until)
			return nil
		})
	}
	return left, writing.Wait()
}

// sort sorts elements into those that are open and those that have ended, by the deadlines of
// the first.
func (c *comparison) sort(elements []string, deadlines map[string]time.Time, now time.Time) {
	for _, element := range elements {
		deadline, there := deadlines[readOpenJob(element).id]
		if !there || !now.Before(deadline) {
			c.ended = append(c.ended, element)
			continue
		}
		c.open = append(c.open, element)
		if deadline.Before(c.until) {
			c.until = deadline
		}
	}
}

// claimComparison notes that a set is believed until a time, and reports whether nobody else
// has done so since it was read. Who dies before the comparison costs the others that time.
func (s *Jobs) claimComparison(
	ctx context.Context, account string, number int, set openSet, until time.Time,
) (mine bool, err error) {
	condition, values := "attribute_not_exists(#believed_until)", item{":until": moment(until)}
	if !set.believed.IsZero() {
		condition, values[":seen"] = "#believed_until = :seen", moment(set.believed)
	}
	condition += " OR #believed_until = :until" // written before, and the answer was lost
	_, err = s.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &s.table, Key: openKey(account, number),
		UpdateExpression:         aws.String("SET #believed_until = :until"),
		ConditionExpression:      aws.String("attribute_exists(#open) AND (" + condition + ")"),
		ExpressionAttributeNames: named("open", believedAttribute), ExpressionAttributeValues: values,
	})
	if _, failed := conditionFailed(err); failed {
		return false, nil
	}
	return err == nil, err
}

// noteComparison removes from a set the jobs that have ended, and notes until when the others
// are believed to be open, unless that is zero. A job that has ended stays ended, so neither
// depends on what the set has now.
func (s *Jobs) noteComparison(ctx context.Context, account string, c comparison) error {
	var change string
	names, values := named("open"), item{}
	if len(c.ended) > 0 {
		change, values[":ended"] = "DELETE #open :ended", texts(c.ended...)
	}
	if !c.until.IsZero() {
		change += " SET #believed_until = :until"
		names["#believed_until"], values[":until"] = believedAttribute, moment(c.until)
	}
	_, err := s.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &s.table, Key: openKey(account, c.number), UpdateExpression: &change,
		// Otherwise nothing is left to remove, and the item may be gone.
		ConditionExpression:      aws.String("attribute_exists(#open)"),
		ExpressionAttributeNames: names, ExpressionAttributeValues: values,
	})
	if _, failed := conditionFailed(err); failed {
		return nil
	}
	return err
}

// deadlines returns those of the jobs that are recorded as open. One without a record was
// withdrawn.
func (s *Jobs) deadlines(ctx context.Context, elements []string) (map[string]time.Time, error) {
	open := map[string]time.Time{}
	for part := range slices.Chunk(elements, itemsAtOnce) {
		keys := make([]item, 0, len(part))
		for _, element := range part {
			keys = append(keys, jobKey(readOpenJob(element).id, RecordPart))
		}
		records, err := s.items(ctx, keys, "id", "status", "deadline")
		if err != nil {
			return nil, err
		}
		for _, record := range records {
			r := reader{item: record}
			id, status := r.text("id"), job.Status(r.text("status"))
			deadline, err := readTime(r.text("deadline"))
			if err != nil {
				return nil, err
			}
			if !status.Terminal() {
				open[id] = deadline
			}
		}
	}
	return open, nil
}
