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

// jobsByAccount is the index of an account's jobs in the order of their ids.
// Only a job's record has the attribute account, and so nothing else is in it.
// Status and model are there for filters: they change twice in a job's life, and
// a list that looks for one state would otherwise read every record.
const jobsByAccount = "jobs-by-account"

// List returns an account's jobs that match the filter as they are at now, without
// their requests, the highest id first, at most limit, beginning below the id
// after. It may give fewer, and none, while more follow: next is the id to go on
// from, and empty when nothing follows. It is one read of the index, which a
// record enters within a second or so, and a batch of reads of the records, which
// say how the jobs are; more of both where few match.
//
// Errors: fault.Unavailable.
func (s *Jobs) List(ctx context.Context, account string, filter job.Filter, after string, limit int,
	now time.Time) (jobs []job.Job, next string, err error) {
	size := limit
	for walked := 0; ; {
		entries, more, err := s.entries(ctx, account, after, size)
		if err != nil {
			return nil, "", storeError("list jobs", err)
		}
		walked += len(entries)
		for len(entries) > 0 && len(jobs) < limit {
			var part []string
			for ; len(entries) > 0 && len(part) < min(batch, limit-len(jobs)); entries = entries[1:] {
				if after = entries[0].ID; mayMatch(entries[0], filter) {
					part = append(part, after)
				}
			}
			found, err := s.matching(ctx, part, filter, now)
			if err != nil {
				return nil, "", storeError("list jobs", err)
			}
			jobs = append(jobs, found...)
		}
		switch {
		case len(entries) == 0 && !more:
			return jobs, "", nil
		case len(jobs) == limit, walked >= max(walk, limit):
			return jobs, after, nil
		}
		size = min(2*size, longestPage)
	}
}

// entries reads a page of the index, below the id after; more says that the
// index goes on.
func (s *Jobs) entries(ctx context.Context, account, after string, size int) (entries []job.Job, more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	condition, values := "#account = :account", item{":account": text(account)}
	names := named("account")
	if after != "" {
		condition += " AND #id < :after"
		names["#id"], values[":after"] = "id", text(after)
	}
	got, err := s.client.Query(ctx, &dynamodb.QueryInput{
		TableName: &s.table, IndexName: aws.String(jobsByAccount), ScanIndexForward: aws.Bool(false),
		Limit:                  aws.Int32(int32(min(size, longestPage))),
		KeyConditionExpression: &condition, ExpressionAttributeNames: names, ExpressionAttributeValues: values,
	})
	if err != nil {
		return nil, false, err
	}
	for _, entry := range got.Items {
		r := reader{item: entry}
		entries = append(entries, job.Job{ID: r.text("id"), Status: job.Status(r.text("status")), Model: r.text("model")})
		if r.err != nil {
			return nil, false, r.err
		}
	}
	return entries, got.LastEvaluatedKey != nil, nil
}

// mayMatch reports whether a job may match the filter, by its entry in the index,
// which may be behind: a job that has not ended there may be in any state.
func mayMatch(entry job.Job, filter job.Filter) bool {
	if !entry.Status.Terminal() {
		filter.Status = ""
	}
	return filter.Matches(entry)
}

// matching returns the jobs of the ids, at most batch, that match the filter as
// they are at now, in the order of the ids.
func (s *Jobs) matching(ctx context.Context, ids []string, filter job.Filter, now time.Time) ([]job.Job, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	records, err := s.records(ctx, ids)
	if err != nil {
		return nil, err
	}
	found := map[string]job.Job{}
	for _, record := range records {
		j, err := readRecord(record)
		if err != nil {
			return nil, err
		}
		found[j.ID] = j.At(now)
	}
	var jobs []job.Job
	for _, id := range ids {
		if j, ok := found[id]; ok && filter.Matches(j) {
			jobs = append(jobs, j)
		}
	}
	return jobs, nil
}

// records reads the records of at most batch jobs, in any order, and of each the
// attributes that are named, or all. One that is not there is left out.
func (s *Jobs) records(ctx context.Context, ids []string, attributes ...string) (records []item, err error) {
	asked := types.KeysAndAttributes{ConsistentRead: aws.Bool(true)}
	for _, id := range ids {
		asked.Keys = append(asked.Keys, jobKey(id, RecordPart))
	}
	if len(attributes) > 0 {
		asked.ProjectionExpression, asked.ExpressionAttributeNames = aws.String("#"+strings.Join(attributes, ", #")),
			named(attributes...)
	}
	for request := (map[string]types.KeysAndAttributes{s.table: asked}); len(request) > 0; {
		answer, err := s.client.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: request})
		if err != nil {
			return nil, err
		}
		records = append(records, answer.Responses[s.table]...)
		// What DynamoDB was too busy for is asked for again.
		if request = answer.UnprocessedKeys; len(request) > 0 {
			if err := pause(ctx, conflictWait); err != nil {
				return nil, err
			}
		}
	}
	return records, nil
}
