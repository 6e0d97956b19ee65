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
	// pageBatch is how many whole jobs, of two items each, DynamoDB reads at once at
	// most.
	pageBatch = itemsAtOnce / 2
	// searchWalk is the most jobs that one List reads for a search, which no index
	// helps.
	searchWalk = 500
)

// List returns an account's jobs that match the filter as they are at now, the highest
// id first, at most limit, beginning below the id after. It may return fewer, or none,
// even if more follow: next is the id to continue from, and is empty if nothing follows.
// It is one read of the index, which has a record within about a second, or of each partition
// of an account that is spread, and a batch read of each pageBatch of the jobs, which have the
// current state; more of both if few match.
//
// Errors: fault.Unavailable.
func (s *Jobs) List(ctx context.Context, account string, filter job.Filter, after string, limit int,
	now time.Time) (jobs []job.Job, next string, err error) {
	size, most := limit, max(walk, limit)
	// spare is how many more jobs are read at once than there is room for.
	spare := 0
	if filter.Search != "" {
		size, most, spare = max(limit, pageBatch), max(searchWalk, limit), pageBatch
	}
	for walked := 0; ; {
		entries, more, err := s.entries(ctx, account, after, size)
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

// mayMatch reports whether a job may match the filter, by its entry in the index. The
// index may lag, and does not say what has started: a job that has not ended there may be in
// any state.
func mayMatch(entry job.Job, filter job.Filter) bool {
	if !entry.Status.Terminal() {
		filter.Status = ""
	}
	filter.Search = "" // the index does not have what a search is in
	return filter.Matches(entry)
}

// matching returns the jobs with the ids, at most pageBatch, that match the filter as they
// are at now, in the order of the ids.
func (s *Jobs) matching(ctx context.Context, ids []string, filter job.Filter, now time.Time) ([]job.Job, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	var keys []item
	for _, id := range ids {
		keys = append(keys, jobKey(id, RecordPart), jobKey(id, requestPart))
	}
	items, err := s.items(ctx, keys)
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
			continue // deleted a moment ago
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

// items reads at most itemsAtOnce items, see readItems.
func (s *Jobs) items(ctx context.Context, keys []item, attributes ...string) (items []item, err error) {
	return readItems(ctx, s.client, s.table, keys, attributes...)
}

// readItems reads at most itemsAtOnce items by their keys, in any order: of each the named
// attributes, or all. A missing item is left out.
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

// readAsked is readItems of what is asked for.
func readAsked(
	ctx context.Context, client *dynamodb.Client, table string, asked types.KeysAndAttributes,
) (items []item, err error) {
	for request := (map[string]types.KeysAndAttributes{table: asked}); len(request) > 0; {
		answer, err := client.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: request})
		if err != nil {
			return nil, err
		}
		items = append(items, answer.Responses[table]...)
		// Keys that DynamoDB was too busy to read are requested again.
		if request = answer.UnprocessedKeys; len(request) > 0 {
			if !clock.Wait(ctx, conflictWait) {
				return nil, ctx.Err()
			}
		}
	}
	return items, nil
}
