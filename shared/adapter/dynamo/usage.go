package dynamo

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"hash/fnv"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"cutroom/shared/domain/usage"
)

const (
	// usageShards is how many items hold the use of one model on one day, each in a
	// partition of its own, so that concurrent calls rarely write the same item, and an
	// account is not bound to the thousand writes a second of one partition.
	usageShards = 8
	// busyShards is how many those of a busy account have, and busyAfter how many days after
	// its first busy record that begins. Who adds a record again must find the same item, so
	// its day decides; and an earlier version, which reads usageShards alone, runs no more.
	busyShards = 64
	busyAfter  = 2
	// busyPart is the part of the item that says from which day on an account has them.
	busyPart = "busy"
	// addsAtOnce is how many records one Add writes at the same time.
	addsAtOnce = 8
	// afterSlash is the character after the slash in sort order. A slash ends the day in
	// the part of an item.
	afterSlash = "0"
)

// Usage is a usage.Store.
//
// An item has what a key of an account used of one model on one day, in one of usageShards, or
// of busyShards where the account makes so many calls that those would be full; items of earlier
// versions have no key. A
// record is added by a transaction of one write, whose token is derived from the record's
// id: DynamoDB writes transactions with the same token once within ten minutes, so that
// no item is needed for each record.
type Usage struct {
	client *dynamodb.Client
	table  string

	mu sync.Mutex
	// busyFrom are the days from which on accounts have busyShards. They never change.
	busyFrom map[string]usage.Day
}

var _ usage.Store = (*Usage)(nil)

// NewUsage returns the usage in the table.
func NewUsage(client *dynamodb.Client, table string) *Usage {
	return &Usage{client: client, table: table, busyFrom: map[string]usage.Day{}}
}

// usageItem is an item of the use of a model on a day.
type usageItem struct {
	Account          string    `dynamodbav:"id"`
	Part             string    `dynamodbav:"part"`
	Day              usage.Day `dynamodbav:"usage_day"`
	Model            string    `dynamodbav:"model"`
	Key              string    `dynamodbav:"used_key"`
	Requests         int64     `dynamodbav:"requests"`
	PromptTokens     int64     `dynamodbav:"prompt_tokens"`
	CachedTokens     int64     `dynamodbav:"cached_tokens"`
	CompletionTokens int64     `dynamodbav:"completion_tokens"`
	ReasoningTokens  int64     `dynamodbav:"reasoning_tokens"`
	Estimated        int64     `dynamodbav:"estimated"`
	SessionSeconds   int64     `dynamodbav:"session_seconds"`
	Jobs             int64     `dynamodbav:"jobs"`
	JobsCompleted    int64     `dynamodbav:"jobs_completed"`
	Cost             int64     `dynamodbav:"cost"`
	BatchRequests    int64     `dynamodbav:"batch_requests"`
	BatchCost        int64     `dynamodbav:"batch_cost"`
}

// Add adds records: one transaction each. Before the first of a busy account it reads from when
// on that has more shards.
//
// Errors: fault.Unavailable. Any of the records may then have been added.
func (u *Usage) Add(ctx context.Context, records []usage.Record) error {
	adding, ctx := errgroup.WithContext(ctx)
	adding.SetLimit(addsAtOnce)
	seen := map[string]bool{}
	for _, record := range records {
		if seen[record.ID] {
			continue
		}
		seen[record.ID] = true
		adding.Go(func() error {
			shards, err := u.shardsOf(ctx, record)
			if err != nil {
				return err
			}
			if write, counts := u.addition(record, shards); counts {
				token := u.token(record)
				return transactOnce(ctx, u.client, []types.TransactWriteItem{write}, &token)
			}
			return nil
		})
	}
	return storeError("add usage", adding.Wait())
}

// Reach reports whether the table can be written, without a change to it.
func (u *Usage) Reach(ctx context.Context) error {
	_, err := u.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &u.table, Key: item{"id": text("smoke"), "part": text("smoke")},
		ConditionExpression: aws.String("attribute_exists(id)"), UpdateExpression: aws.String("SET usage_day = :none"),
		ExpressionAttributeValues: item{":none": text("")},
	})
	if _, failed := conditionFailed(err); failed {
		return nil
	}
	return err
}

// usagePartition returns the partition of a shard of an account's usage. The first is that
// of all shards of earlier versions. No account has the character in its name.
func usagePartition(account string, shard uint32) string {
	if shard == 0 {
		return account
	}
	return fmt.Sprintf("%s#%d", account, shard)
}

// usagePart returns the part of the item of what a key uses of a model on a day.
func usagePart(day usage.Day, model, key string, shard uint32) string {
	return fmt.Sprintf("%s/%s/%s/%d", day, model, url.PathEscape(key), shard)
}

// token returns the token of a record's transaction. Tokens are shared by all tables of an
// AWS account, and have at most 36 characters.
func (u *Usage) token(record usage.Record) string {
	hash := sha256.Sum256([]byte(u.table + "\x00" + record.ID))
	return base64.RawURLEncoding.EncodeToString(hash[:])[:36]
}

// shardsOf returns over how many shards the records of the account and the day are.
func (u *Usage) shardsOf(ctx context.Context, record usage.Record) (uint32, error) {
	if !record.Busy {
		return usageShards, nil
	}
	u.mu.Lock()
	from := u.busyFrom[record.Account]
	u.mu.Unlock()
	var err error
	if from == "" {
		if from, err = u.readBusy(ctx, record.Account); err == nil && from == "" {
			from, err = u.busy(ctx, record.Account, later(record.Day))
		}
		if err != nil {
			return 0, err
		}
	}
	if record.Day < from {
		return usageShards, nil
	}
	return busyShards, nil
}

// later returns the day that is busyAfter days after a day.
func later(day usage.Day) usage.Day {
	at, err := time.Parse(time.DateOnly, string(day))
	if err != nil {
		at = time.Unix(1<<40, 0) // of no day of ours: never
	}
	return usage.DayOf(at.AddDate(0, 0, busyAfter))
}

// busyKey returns the key of the item that says from when on an account has busyShards.
func busyKey(account string) item {
	return item{"id": text(busyPartition(account)), "part": text(busyPart)}
}

// busyPartition returns the partition of that item. No account has the character in its name.
func busyPartition(account string) string { return account + "#" }

// readBusy returns from when on an account has busyShards, empty for never: one read.
func (u *Usage) readBusy(ctx context.Context, account string) (usage.Day, error) {
	found, err := u.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &u.table, Key: busyKey(account), ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return "", err
	}
	return u.noteBusy(account, found.Item)
}

// busy gives an account busyShards from a day on, unless it has them. It returns the day.
func (u *Usage) busy(ctx context.Context, account string, from usage.Day) (usage.Day, error) {
	written, err := u.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &u.table, Key: busyKey(account), ReturnValues: types.ReturnValueAllNew,
		UpdateExpression:          aws.String("SET busy_from = if_not_exists(busy_from, :from)"),
		ExpressionAttributeValues: item{":from": text(string(from))},
	})
	if err != nil {
		return "", err
	}
	return u.noteBusy(account, written.Attributes)
}

func (u *Usage) noteBusy(account string, i item) (usage.Day, error) {
	if i == nil {
		return "", nil
	}
	r := reader{item: i}
	from := usage.Day(r.text("busy_from"))
	u.mu.Lock()
	defer u.mu.Unlock()
	u.busyFrom[account] = from
	return from, r.err
}

// SpreadUsage gives an account that is busy more shards from a day on. Add does it by itself,
// for two days later; who knows an account to be busy can do it before.
//
// Errors: fault.Unavailable.
func (u *Usage) SpreadUsage(ctx context.Context, account string, from usage.Day) error {
	_, err := u.busy(ctx, account, from)
	return storeError("spread the usage of an account", err)
}

// addition returns the write that adds a record in one of so many shards, or none if the record
// counts nothing.
func (u *Usage) addition(record usage.Record, shards uint32) (write types.TransactWriteItem, counts bool) {
	shard := fnv.New32a()
	_, _ = shard.Write([]byte(record.ID)) // a hash never fails
	place := shard.Sum32() % shards
	values := item{":day": text(string(record.Day)), ":model": text(record.Model), ":key": text(record.Key)}
	var additions []string
	for name, n := range map[string]int64{
		"requests": record.Requests, "prompt_tokens": record.PromptTokens, "cached_tokens": record.CachedTokens,
		"completion_tokens": record.CompletionTokens, "reasoning_tokens": record.ReasoningTokens,
		"estimated": record.Estimated, "session_seconds": record.SessionSeconds, "jobs": record.Jobs,
		"jobs_completed": record.JobsCompleted, "cost": record.Cost, "batch_requests": record.BatchRequests,
		"batch_cost": record.BatchCost,
	} {
		if n != 0 {
			additions = append(additions, name+" :"+name)
			values[":"+name] = number(n)
		}
	}
	// The same record must make the same transaction each time.
	slices.Sort(additions)
	return types.TransactWriteItem{Update: &types.Update{
		TableName: &u.table,
		Key: item{
			"id":   text(usagePartition(record.Account, place)),
			"part": text(usagePart(record.Day, record.Model, record.Key, place)),
		},
		UpdateExpression:          aws.String("SET usage_day = :day, model = :model, used_key = :key ADD " + strings.Join(additions, ", ")),
		ExpressionAttributeValues: values,
	}}, len(additions) > 0
}

// Totals returns an account's use from the first to the last day, both included, in the
// order of day, model and key: a consistent read of each of usageShards partitions, for each
// megabyte of it, which has some thousands of models and days, and one that tells whether to
// read the others of a busy account too.
//
// Errors: fault.Unavailable.
func (u *Usage) Totals(ctx context.Context, account string, first, last usage.Day) ([]usage.Total, error) {
	if first > last {
		return nil, nil
	}
	type group struct {
		day        usage.Day
		model, key string
	}
	sums := map[group]usage.Counts{}
	pages, err := u.shards(ctx, account, first, last)
	if err != nil {
		return nil, storeError("read usage", err)
	}
	for _, page := range pages {
		for _, i := range page {
			key := group{i.Day, i.Model, i.Key}
			sum := sums[key]
			sum.Add(i.counts())
			sums[key] = sum
		}
	}
	var totals []usage.Total
	for key, sum := range sums {
		if sum == (usage.Counts{}) {
			continue // of a job that was not accepted after all
		}
		totals = append(totals, usage.Total{Day: key.day, Model: key.model, Key: key.key, Counts: sum})
	}
	slices.SortFunc(totals, func(a, b usage.Total) int {
		return cmp.Or(cmp.Compare(a.Day, b.Day), cmp.Compare(a.Model, b.Model), cmp.Compare(a.Key, b.Key))
	})
	return totals, nil
}

// shards reads the partitions of an account.
func (u *Usage) shards(ctx context.Context, account string, first, last usage.Day) ([][]usageItem, error) {
	pages := make([][]usageItem, busyShards)
	read := func(reading *errgroup.Group, ctx context.Context, from, to int) {
		for shard := from; shard < to; shard++ {
			reading.Go(func() (err error) {
				pages[shard], err = u.shard(ctx, usagePartition(account, uint32(shard)), first, last)
				return err
			})
		}
	}
	var busyFrom usage.Day
	reading, within := errgroup.WithContext(ctx)
	reading.Go(func() (err error) {
		busyFrom, err = u.readBusy(within, account)
		return err
	})
	read(reading, within, 0, usageShards)
	if err := reading.Wait(); err != nil {
		return nil, err
	}
	if busyFrom == "" || last < busyFrom {
		return pages, nil
	}
	more, within := errgroup.WithContext(ctx)
	read(more, within, usageShards, busyShards)
	return pages, more.Wait()
}

// shard reads a partition.
func (u *Usage) shard(ctx context.Context, partition string, first, last usage.Day) (all []usageItem, err error) {
	for start := item(nil); ; {
		page, next, err := u.page(ctx, partition, first, last, start)
		if err != nil {
			return nil, err
		}
		all = append(all, page...)
		if next == nil {
			return all, nil
		}
		start = next
	}
}

func (u *Usage) page(ctx context.Context, partition string, first, last usage.Day, start item) ([]usageItem, item,
	error) {
	got, err := u.client.Query(ctx, &dynamodb.QueryInput{
		TableName: &u.table, ConsistentRead: aws.Bool(true), ExclusiveStartKey: start,
		KeyConditionExpression: aws.String("id = :partition AND part BETWEEN :first AND :last"),
		ExpressionAttributeValues: item{
			":partition": text(partition), ":first": text(string(first)), ":last": text(string(last) + afterSlash),
		},
	})
	if err != nil {
		return nil, nil, err
	}
	var page []usageItem
	if err := attributevalue.UnmarshalListOfMaps(got.Items, &page); err != nil {
		return nil, nil, err
	}
	return page, got.LastEvaluatedKey, nil
}

func (i usageItem) counts() usage.Counts {
	return usage.Counts{
		Requests: i.Requests, PromptTokens: i.PromptTokens, CachedTokens: i.CachedTokens,
		CompletionTokens: i.CompletionTokens, ReasoningTokens: i.ReasoningTokens,
		Estimated: i.Estimated, SessionSeconds: i.SessionSeconds, Jobs: i.Jobs, JobsCompleted: i.JobsCompleted,
		Cost: i.Cost, BatchRequests: i.BatchRequests, BatchCost: i.BatchCost,
	}
}
