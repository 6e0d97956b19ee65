package dynamo

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"iter"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"cutroom/shared/domain/usage"
)

const (
	// usageShards is the number of items over which the usage of one model on one day is spread.
	// Each has its own partition, so that concurrent transactions rarely write the same item.
	usageShards = 8
	addsAtOnce  = 8 // the number of concurrent writes of one Add
	// In an item's sort key, a slash follows the day. afterSlash sorts after that slash.
	afterSlash = "0"
)

// Usage is a usage.Store.
//
// An account's usage of one model with one key on one day is spread over usageShards items. Items of version 0.1.0
// may have no key. A transaction of one write adds a record. Its token is derived from the record's id, so DynamoDB
// ignores a repetition within ten minutes.
type Usage struct {
	client *dynamodb.Client
	table  string
}

var _ usage.Store = (*Usage)(nil)

func NewUsage(client *dynamodb.Client, table string) *Usage { return &Usage{client, table} }

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
			if write, counts := u.addition(record); counts {
				token := u.token(record)
				return transactOnce(ctx, u.client, []types.TransactWriteItem{write}, &token)
			}
			return nil
		})
	}
	return storeError("add usage", adding.Wait())
}

// Account names do not contain "#".
func usagePartition(account string, shard uint32) string {
	if shard == 0 {
		return account
	}
	return fmt.Sprintf("%s#%d", account, shard)
}

func usagePart(day usage.Day, model, key string, shard uint32) string {
	return fmt.Sprintf("%s/%s/%s/%d", day, model, url.PathEscape(key), shard)
}

// A token has at most 36 characters. All of an AWS account's tables share one token namespace.
func (u *Usage) token(record usage.Record) string {
	hash := sha256.Sum256([]byte(u.table + "\x00" + record.ID))
	return base64.RawURLEncoding.EncodeToString(hash[:])[:36]
}

// addition returns the write that adds a record. counts is false if the record is empty.
func (u *Usage) addition(record usage.Record) (write types.TransactWriteItem, counts bool) {
	place := hashOf(record.ID) % usageShards
	values := item{":day": text(string(record.Day)), ":model": text(record.Model), ":key": text(record.Key)}
	var additions []string
	for _, one := range record.All() {
		if *one.Value != 0 {
			additions = append(additions, one.Name+" :"+one.Name)
			values[":"+one.Name] = number(*one.Value)
		}
	}
	// The same record must always produce the same transaction.
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

func (u *Usage) Totals(
	ctx context.Context, account string, first, last usage.Day, by usage.Columns,
) ([]usage.Total, error) {
	if first > last {
		return nil, nil
	}
	sums, mu := usage.Sums{}, sync.Mutex{}
	reading, ctx := errgroup.WithContext(ctx)
	for shard := range uint32(usageShards) {
		reading.Go(func() error {
			for i, err := range u.shard(ctx, usagePartition(account, shard), first, last) {
				if err != nil {
					return err
				}
				total, err := readTotal(i)
				if err != nil {
					return err
				}
				mu.Lock()
				err = sums.Add(total, by)
				mu.Unlock()
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := reading.Wait(); err != nil {
		return nil, storeError("read usage", err)
	}
	return sums.Totals(), nil
}

func (u *Usage) shard(ctx context.Context, partition string, first, last usage.Day) iter.Seq2[item, error] {
	return queried(ctx, u.client, &dynamodb.QueryInput{
		TableName: &u.table, ConsistentRead: aws.Bool(true),
		KeyConditionExpression: aws.String("id = :partition AND part BETWEEN :first AND :last"),
		ExpressionAttributeValues: item{
			":partition": text(partition), ":first": text(string(first)), ":last": text(string(last) + afterSlash),
		},
	})
}

func readTotal(i item) (usage.Total, error) {
	r := reader{item: i}
	total := usage.Total{Day: usage.Day(r.text("usage_day")), Model: r.text("model"), Key: r.text("used_key")}
	for _, one := range total.All() {
		*one.Value = r.number(one.Name)
	}
	return total, r.err
}
