package dynamo

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/usage"
	"cutroom/shared/service/move"
)

// What a move copies while nobody can reach it has the mark of its source. By it a later
// attempt knows what it may replace or remove. Whoever else writes an item whole leaves no
// mark, so that it is no longer the move's.

// markAttribute has the source, and hasMark is the condition that it is :source.
const (
	markAttribute = "moved_from"
	hasMark       = markAttribute + " = :source"
)

// mark marks an item, and returns it.
func mark(values item, source string) item {
	values[markAttribute] = text(source)
	return values
}

// marked reports whether an item has the mark of a source.
func marked(values item, source string) bool {
	r := reader{item: values}
	return values != nil && r.text(markAttribute) == source
}

// begun is the condition that the move from a source is begun, and not further.
func (m *Moved) begun(source string) types.TransactWriteItem {
	return types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
		TableName: &m.ledger, Key: item{"id": text(ledgerPrefix + source)},
		ConditionExpression: aws.String("#state = :begun"), ExpressionAttributeNames: named("state"),
		ExpressionAttributeValues: item{":begun": text(string(move.Begun))},
	}}
}

// whileBegun writes as long as the move from a source is begun.
//
// Errors: move.ErrDiffers if it is not, or another condition was false.
func (m *Moved) whileBegun(ctx context.Context, source string, writes ...types.TransactWriteItem) error {
	err := transact(ctx, m.client, append(writes, m.begun(source)))
	if r := refused(err); r != nil {
		return fmt.Errorf("%w: it was changed meanwhile: %w", move.ErrDiffers, r.err)
	}
	return err
}

// replace writes an item over one that has the mark of a source, and others with it.
func (m *Moved) replace(ctx context.Context, source, table string, values item, others ...item) error {
	writes := []types.TransactWriteItem{{Put: &types.Put{
		TableName: &table, Item: mark(values, source),
		ConditionExpression: aws.String(hasMark), ExpressionAttributeValues: item{":source": text(source)},
	}}}
	for _, other := range others {
		writes = append(writes, types.TransactWriteItem{Put: &types.Put{TableName: &table, Item: mark(other, source)}})
	}
	return m.whileBegun(ctx, source, writes...)
}

// removal is the write that removes an item with the mark of a source.
func removal(table, source string, key item) types.TransactWriteItem {
	return types.TransactWriteItem{Delete: &types.Delete{
		TableName: &table, Key: key, ConditionExpression: aws.String(hasMark),
		ExpressionAttributeValues: item{":source": text(source)},
	}}
}

// part is a part of what a deploy holds of an account.
type part struct {
	what string
	// items are its items, of which own says whether they count.
	items iter.Seq2[item, error]
	own   func(item) bool
}

// parts returns what a deploy may hold of an account. The keys come first: who has one can
// make all the rest.
func (m *Moved) parts(ctx context.Context, account string) []part {
	every := func(item) bool { return true }
	parts := []part{
		{"keys", m.partition(ctx, m.keys.table, keysByAccount, "account", account), every},
		{"budgets", m.partition(ctx, m.budgets.table, "", "id", budgetPrefix+account), every},
	}
	for _, partition := range m.files.partitions(account, true) {
		parts = append(parts, part{"files", m.partition(ctx, m.files.table, "", "account", partition), func(i item) bool {
			r := reader{item: i}
			return r.text("id") != storageItem // which counts what all others are
		}})
	}
	for n := range uint32(usageShards) {
		parts = append(parts, part{"usage", m.partition(ctx, m.usage.table, "", "id", usagePartition(account, n)), every})
	}
	// Of a busy account, whose other partitions are not read, it is there before any usage is.
	parts = append(parts, part{"usage", m.partition(ctx, m.usage.table, "", "id", busyPartition(account)), every})
	for n := range uint32(indexPartitions) {
		parts = append(parts, part{"jobs", m.records(ctx, indexPartition(account, n)), every})
	}
	return parts
}

// Holds says what the deploy holds of an account without the mark of a source.
func (m *Moved) Holds(ctx context.Context, source, account string) (string, error) {
	for _, p := range m.parts(ctx, account) {
		for i, err := range p.items {
			if err != nil {
				return "", storeError("look for an account", err)
			}
			if p.own(i) && !marked(i, source) {
				return p.what, nil
			}
		}
	}
	return "", nil
}

// partition returns the items of a partition of a table, or of its index.
func (m *Moved) partition(ctx context.Context, table, index, key, partition string) iter.Seq2[item, error] {
	query := &dynamodb.QueryInput{
		TableName: &table, KeyConditionExpression: aws.String("#key = :partition"), Limit: aws.Int32(longestPage),
		ExpressionAttributeNames:  map[string]string{"#key": key},
		ExpressionAttributeValues: item{":partition": text(partition)},
	}
	if index != "" {
		query.IndexName = &index
	} else {
		query.ConsistentRead = aws.Bool(true)
	}
	return func(yield func(item, error) bool) {
		for start := item(nil); ; {
			query.ExclusiveStartKey = start
			page, err := m.page(ctx, query)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, i := range page.Items {
				if !yield(i, nil) {
					return
				}
			}
			if start = page.LastEvaluatedKey; start == nil {
				return
			}
		}
	}
}

func (m *Moved) page(ctx context.Context, query *dynamodb.QueryInput) (*dynamodb.QueryOutput, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	return m.client.Query(ctx, query)
}

// records returns the ids and marks of the jobs in a partition of the index, which has no
// marks itself. It has a job within about a second, and another attempt of a move begins
// later than that.
func (m *Moved) records(ctx context.Context, partition string) iter.Seq2[item, error] {
	return func(yield func(item, error) bool) {
		var keys []item
		flush := func() bool {
			within, cancel := context.WithTimeout(ctx, callTime)
			defer cancel()
			found, err := m.jobs.items(within, keys, "id", markAttribute)
			keys = nil
			if err != nil {
				return yield(nil, err)
			}
			for _, i := range found {
				if !yield(i, nil) {
					return false
				}
			}
			return true
		}
		for i, err := range m.partition(ctx, m.jobs.table, jobsByAccount, "account", partition) {
			if err != nil {
				yield(nil, err)
				return
			}
			r := reader{item: i}
			keys = append(keys, jobKey(r.text("id"), RecordPart))
			if len(keys) == itemsAtOnce && !flush() {
				return
			}
		}
		if len(keys) > 0 {
			flush()
		}
	}
}

// Written returns the records of an account with the mark of a source.
func (m *Moved) Written(ctx context.Context, source, account string) iter.Seq2[move.Record, error] {
	return func(yield func(move.Record, error) bool) {
		for _, p := range m.parts(ctx, account) {
			for i, err := range p.items {
				if err != nil {
					yield(move.Record{}, storeError("read what was moved", err))
					return
				}
				r := reader{item: i}
				if !marked(i, source) || p.what == "files" && !strings.HasPrefix(r.text("id"), filePrefix) {
					continue
				}
				record, err := recordOf(p.what, account, i)
				if !yield(record, err) || err != nil {
					return
				}
			}
		}
	}
}

// recordOf returns the record that a part's item is of.
func recordOf(what, account string, i item) (move.Record, error) {
	r := reader{item: i}
	record := move.Record{Account: account}
	switch what {
	case "files":
		record.Kind, record.ID = move.AFile, r.text("id")
	case "jobs":
		record.Kind, record.ID = move.AJob, r.text("id")
	case "budgets":
		record = move.BudgetRecord(readBudget(account, &r).ID)
	case "usage":
		record.Kind = move.SomeUse
		record.Usage = move.UsageID{Day: usage.Day(r.text("usage_day")), Model: r.text("model"), Key: r.text("used_key")}
	default:
		return record, fmt.Errorf("dynamo: %s were moved before their time", what)
	}
	return record, r.err
}

// Remove removes a record with the mark of a source.
func (m *Moved) Remove(ctx context.Context, source string, r move.Record) error {
	var err error
	switch r.Kind {
	case move.AFile:
		err = m.removeFile(ctx, source, r)
	case move.SomeUse:
		err = m.whileBegun(ctx, source, removal(m.usage.table, source, item{
			"id": text(r.Account), "part": text(usagePart(r.Usage.Day, r.Usage.Model, r.Usage.Key, 0)),
		}))
	case move.ABudget:
		err = m.changeBudget(ctx, source, r.Budget, nil)
	case move.AJob:
		err = m.whileBegun(ctx, source, removal(m.jobs.table, source, jobKey(r.ID, RecordPart)),
			types.TransactWriteItem{Delete: &types.Delete{TableName: &m.jobs.table, Key: jobKey(r.ID, requestPart)}},
			types.TransactWriteItem{Delete: &types.Delete{TableName: &m.jobs.table, Key: jobKey(r.ID, webhookPart)}})
	}
	return storeError("remove what was moved", err)
}

// removeFile removes a file, its entry and what it counts. The entry may be gone, if the
// file has expired.
func (m *Moved) removeFile(ctx context.Context, source string, r move.Record) error {
	f, err := m.files.get(ctx, r.Account, r.ID)
	if err != nil {
		return err
	}
	writes := []types.TransactWriteItem{removal(m.files.table, source, fileKey(r.Account, r.ID))}
	if _, err := m.files.get(ctx, r.Account, entryID(f.File)); err == nil {
		writes = append(writes, m.files.remove(r.Account, entryID(f.File)), m.files.count(r.Account, tally{bytes: -f.Counts()}))
	} else if !fault.Is(err, fault.NotFound) {
		return err
	}
	return m.whileBegun(ctx, source, writes...)
}
