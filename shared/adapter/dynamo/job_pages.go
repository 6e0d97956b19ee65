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

// jobsByAccount is the index of an account's jobs in the order of their ids. Only the
// record of a job has the attribute account, so the index has nothing else. It includes
// status and model for filters: they change twice in a job's life, and a list of one
// status would otherwise read every record.
const jobsByAccount = "jobs-by-account"

// List returns an account's jobs that match the filter as they are at now, without
// their requests, the highest id first, at most limit, beginning below the id
// after. It may return fewer, or none, even if more follow: next is the id to continue
// from, and is empty if nothing follows. It is one read of the index, which has a record
// within about a second, and one batch read of the records, which have the current
// state; more of both if few match.
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

// entries reads a page of the index, below the id after; more reports whether the index
// continues.
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

// mayMatch reports whether a job may match the filter, by its entry in the index. The
// index may lag: a job that has not ended there may be in any state.
func mayMatch(entry job.Job, filter job.Filter) bool {
	if !entry.Status.Terminal() {
		filter.Status = ""
	}
	return filter.Matches(entry)
}

// matching returns the jobs with the ids, at most batch, that match the filter as they
// are at now, in the order of the ids.
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

// records reads the records of at most batch jobs, in any order: of each the named
// attributes, or all. A missing record is left out.
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
		// Keys that DynamoDB was too busy to read are requested again.
		if request = answer.UnprocessedKeys; len(request) > 0 {
			if err := pause(ctx, conflictWait); err != nil {
				return nil, err
			}
		}
	}
	return records, nil
}
