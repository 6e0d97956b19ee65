package dynamo

import (
	"context"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"cutroom/shared/domain/job"
	"cutroom/shared/platform/clock"
)

const (
	// pageBatch is the maximum number of jobs that one call reads. Each job has two items.
	pageBatch = itemsAtOnce / 2
	// searchWalk is the maximum number of jobs that one List reads for a search, because no index supports it.
	searchWalk = 500
)

// jobsByAccount is the index of an account's jobs by id. It includes status and model for filters. Without them,
// listing the jobs with one status would mean reading every record. Starting a job does not change the attribute
// status (see jobRecord.OpenStatus), so each job writes to the index only twice.
const jobsByAccount = "jobs-by-account"

// List reads the index and then the jobs' current state. A record appears in the index within about a second.
func (s *Jobs) List(ctx context.Context, account string, filter job.Filter, after string, limit int,
	now time.Time) (jobs []job.Job, next string, err error) {
	size, most := limit, max(walk, limit)
	// spare is how many more jobs than the limit a read may fetch.
	spare := 0
	if filter.Search != "" {
		size, most, spare = max(limit, pageBatch), max(searchWalk, limit), pageBatch
	}
	for walked := 0; ; {
		entries, more, err := s.entries(ctx, account, after, size, filter.OldestFirst)
		if err != nil {
			return nil, "", storeError("list jobs", err)
		}
		walked += len(entries)
		for len(entries) > 0 && len(jobs) < limit {
			var part []string
			for ; len(entries) > 0 && len(part) < min(pageBatch, limit-len(jobs)+spare); entries = entries[1:] {
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
		if len(jobs) > limit {
			return jobs[:limit], jobs[limit-1].ID, nil
		}
		switch {
		case len(entries) == 0 && !more:
			return jobs, "", nil
		case len(jobs) == limit, walked >= most:
			return jobs, after, nil
		}
		size = min(2*size, longestPage, most-walked)
	}
}

// mayMatch checks a filter against a job's index entry, which may lag and does not show that a job has started.
func mayMatch(entry job.Job, filter job.Filter) bool {
	if !entry.Status.Terminal() {
		filter.Status = ""
	}
	filter.Search, filter.Lane = "", "" // the index lacks these attributes
	return filter.Matches(entry)
}

// entries reads index entries with ids below the given one, highest id first, or oldestFirst the reverse. It stops after
// size entries.
func (s *Jobs) entries(
	ctx context.Context, account, after string, size int, oldestFirst bool,
) (entries []job.Job, more bool, err error) {
	condition, values := "#account = :account", item{":account": text(account)}
	names := named("account")
	if after != "" {
		condition += " AND #id < :after"
		if oldestFirst {
			condition = strings.Replace(condition, "<", ">", 1)
		}
		names["#id"], values[":after"] = "id", text(after)
	}
	got, err := s.client.Query(ctx, &dynamodb.QueryInput{
		TableName: &s.table, IndexName: aws.String(jobsByAccount), ScanIndexForward: &oldestFirst,
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
	return entries, got.LastEvaluatedKey != nil && len(entries) > 0, nil
}

// matching returns the jobs among ids (at most pageBatch) that match the filter, in the same order.
func (s *Jobs) matching(ctx context.Context, ids []string, filter job.Filter, now time.Time) ([]job.Job, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	var keys []item
	for _, id := range ids {
		keys = append(keys, jobKey(id, RecordPart), jobKey(id, requestPart))
	}
	items, err := readItems(ctx, s.client, s.table, keys)
	if err != nil {
		return nil, err
	}
	parts := map[string]item{}
	for _, part := range items {
		r := reader{item: part}
		parts[r.text("id")+"/"+r.text("part")] = part
	}
	var jobs []job.Job
	for _, id := range ids {
		record, request := parts[id+"/"+RecordPart], parts[id+"/"+requestPart]
		if record == nil || request == nil {
			continue // just deleted
		}
		j, err := readJob(record, request)
		if err != nil {
			return nil, err
		}
		if j = j.At(now); filter.Matches(j) {
			jobs = append(jobs, j)
		}
	}
	return jobs, nil
}

// readItems reads at most itemsAtOnce items, in any order, with the named attributes or, if none
// are named, all of them. It skips missing items.
func readItems(
	ctx context.Context, client *dynamodb.Client, table string, keys []item, attributes ...string,
) (items []item, err error) {
	asked := types.KeysAndAttributes{Keys: keys, ConsistentRead: aws.Bool(true)}
	if len(attributes) > 0 {
		asked.ProjectionExpression, asked.ExpressionAttributeNames = aws.String("#"+strings.Join(attributes, ", #")),
			named(attributes...)
	}
	return readAsked(ctx, client, table, asked)
}

func readAsked(
	ctx context.Context, client *dynamodb.Client, table string, asked types.KeysAndAttributes,
) (items []item, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	for request := (map[string]types.KeysAndAttributes{table: asked}); len(request) > 0; {
		answer, err := client.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: request})
		if err != nil {
			return nil, err
		}
		items = append(items, answer.Responses[table]...)
		// Retry the keys that DynamoDB was too busy to read.
		if request = answer.UnprocessedKeys; len(request) > 0 {
			if !clock.Wait(ctx, conflictWait) {
				return nil, ctx.Err()
			}
		}
	}
	return items, nil
}
