package dynamo

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

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
	// believedFrom is how many jobs a set has of which the result is noted: the write costs as
	// much as a read of five records for each KB. Smaller sets are compared each time.
	believedFrom = 25
	// clockSlack is how much the clocks of processes may differ.
	clockSlack = time.Second
	// believedAttribute is the attribute of a set with the time until which it is believed.
	believedAttribute = "believed_until"
)

// isBelieved reports whether all jobs of a set are taken to be open. A time that lies much
// further ahead was written by a clock that is wrong.
func (o openSet) isBelieved(now time.Time) bool {
	return now.Before(o.believed) && !o.believed.After(now.Add(believedFor+clockSlack))
}

// freeEnded compares a set with the records of its jobs, removes those that have ended, and
// returns what is left; or the set as it is, where it is believed. Of a set that takes several
// reads one process compares it, and the others believe it meanwhile.
func (s *Jobs) freeEnded(ctx context.Context, account string, number int, set openSet) (openSet, error) {
	now := s.now()
	if len(set.elements) == 0 || set.isBelieved(now) {
		return set, nil
	}
	until, noted := now.Add(believedFor).Truncate(time.Millisecond), time.Time{}
	if len(set.elements) > itemsAtOnce {
		mine, err := s.claimComparison(ctx, account, number, set, until)
		if err != nil || !mine {
			return set, err
		}
		noted = until
	}
	var open, ended []string
	for rest := set.elements; len(rest) > 0; rest = rest[min(itemsAtOnce, len(rest)):] {
		part := rest[:min(itemsAtOnce, len(rest))]
		deadlines, err := s.deadlines(ctx, part)
		if err != nil {
			return openSet{}, err
		}
		for _, element := range part {
			deadline, there := deadlines[readOpenJob(element).id]
			if !there || !s.now().Before(deadline) {
				ended = append(ended, element)
				continue
			}
			open = append(open, element)
			if deadline.Before(until) {
				until = deadline
			}
		}
	}
	set.elements, set.believed = open, until
	if len(open) < believedFrom && noted.IsZero() {
		until = noted
	}
	if len(ended) == 0 && until.Equal(noted) {
		return set, nil
	}
	return set, s.noteComparison(ctx, account, number, ended, until)
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
func (s *Jobs) noteComparison(ctx context.Context, account string, number int, ended []string, until time.Time) error {
	var change string
	names, values := named("open"), item{}
	if len(ended) > 0 {
		change, values[":ended"] = "DELETE #open :ended", texts(ended...)
	}
	if !until.IsZero() {
		change += " SET #believed_until = :until"
		names["#believed_until"], values[":until"] = believedAttribute, moment(until)
	}
	_, err := s.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &s.table, Key: openKey(account, number), UpdateExpression: &change,
		// Otherwise nothing is left to remove, and the item may be gone.
		ConditionExpression:      aws.String("attribute_exists(#open)"),
		ExpressionAttributeNames: names, ExpressionAttributeValues: values,
	})
	if _, failed := conditionFailed(err); failed {
		return nil
	}
	return err
}

// deadlines returns those of the jobs, at most itemsAtOnce, that are recorded as open. One
// without a record was withdrawn.
func (s *Jobs) deadlines(ctx context.Context, elements []string) (map[string]time.Time, error) {
	keys := make([]item, 0, len(elements))
	for _, element := range elements {
		keys = append(keys, jobKey(readOpenJob(element).id, RecordPart))
	}
	records, err := s.items(ctx, keys, "id", "status", "deadline")
	if err != nil {
		return nil, err
	}
	open := map[string]time.Time{}
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
	return open, nil
}
