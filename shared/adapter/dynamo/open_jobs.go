package dynamo

import (
	"context"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"cutroom/shared/domain/job"
)

// An account's open jobs are a set in an item of its own. The transaction that records a
// job adds it, so the set is never too small; it is removed when somebody finds that it
// has ended. The state machine, which ends most jobs, does not remove them: one more
// state transition for each would cost more than all other calls of a job together.

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
	// batch is how many items DynamoDB reads at once at most.
	batch = 100
)

func openKey(account string) item { return jobKey("account#"+account, "open") }

// openJobs returns an account's jobs that have not ended, and removes from the set those
// that have; freed is how many.
func (s *Jobs) openJobs(ctx context.Context, account string) (open []openJob, freed int, err error) {
	found, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &s.table, Key: openKey(account), ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return nil, 0, err
	}
	set, _ := found.Item["open"].(*types.AttributeValueMemberSS)
	if set == nil {
		return nil, 0, nil
	}
	var ended []string
	for stored := set.Value; len(stored) > 0; stored = stored[min(batch, len(stored)):] {
		part := stored[:min(batch, len(stored))]
		isOpen, err := s.areOpen(ctx, part)
		if err != nil {
			return nil, 0, err
		}
		for _, element := range part {
			if j := readOpenJob(element); isOpen[j.id] {
				open = append(open, j)
			} else {
				ended = append(ended, element)
			}
		}
	}
	if len(ended) > 0 {
		// A job that has ended stays ended, so the removal needs no condition.
		err = s.freeAll(ctx, account, ended)
	}
	return open, len(ended), err
}

// areOpen returns which of the jobs, at most batch, have not ended. A job past its
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

// free removes a job that has ended from its account's set.
func (s *Jobs) free(ctx context.Context, j job.Job) error {
	return s.freeAll(ctx, j.Account, []string{openJob{j.Lane, j.ID}.String()})
}

func (s *Jobs) freeAll(ctx context.Context, account string, elements []string) error {
	_, err := s.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &s.table, Key: openKey(account),
		UpdateExpression:         aws.String("DELETE #open :ended"),
		ExpressionAttributeNames: named("open"), ExpressionAttributeValues: item{":ended": texts(elements...)},
	})
	return err
}

func texts(all ...string) types.AttributeValue { return &types.AttributeValueMemberSS{Value: all} }

// pause waits.
//
// Errors: the context's if it ends first.
func pause(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
