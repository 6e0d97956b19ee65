package dynamo

import (
	"context"
	"encoding/json"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"cutroom/shared/domain/audit"
)

// auditPrefix and an account's name are the partition of its entries in the table of usage.
// The id of an entry is its sort key.
const auditPrefix = "audit/"

// Audit is an audit.Log in the table of usage, whose TTL removes entries.
type Audit struct {
	client *dynamodb.Client
	table  string
}

var _ audit.Log = (*Audit)(nil)

// NewAudit returns the log in the table of usage.
func NewAudit(client *dynamodb.Client, table string) *Audit { return &Audit{client, table} }

// Entries returns entries of an account, newest first: one consistent read for each
// megabyte.
//
// Errors: fault.Unavailable.
func (a *Audit) Entries(ctx context.Context, account string, query audit.Query) ([]audit.Entry, error) {
	low, high := query.Range()
	var entries []audit.Entry
	if low >= high {
		return nil, nil
	}
	for start := item(nil); ; {
		items, next, err := a.page(ctx, account, low, high, query.Limit-len(entries), start)
		if err != nil {
			return nil, storeError("read the audit log", err)
		}
		for _, i := range items {
			// Both bounds are included in what is read.
			e, err := readAuditEntry(account, i)
			if err != nil {
				return nil, err
			}
			if e.ID != high {
				entries = append(entries, e)
			}
		}
		if next == nil || len(entries) >= query.Limit {
			return entries, nil
		}
		start = next
	}
}

func (a *Audit) page(ctx context.Context, account, low, high string, limit int, start item) ([]item, item, error) {
	got, err := a.client.Query(ctx, &dynamodb.QueryInput{
		TableName: &a.table, ConsistentRead: aws.Bool(true), ScanIndexForward: aws.Bool(false),
		Limit: aws.Int32(int32(limit)), ExclusiveStartKey: start, //nolint:gosec // a page has 100 entries at most
		KeyConditionExpression: aws.String("id = :account AND part BETWEEN :low AND :high"),
		ExpressionAttributeValues: item{
			":account": text(auditPrefix + account), ":low": text(low), ":high": text(high),
		},
	})
	if err != nil {
		return nil, nil, err
	}
	return got.Items, got.LastEvaluatedKey, nil
}

func readAuditEntry(account string, i item) (audit.Entry, error) {
	r := reader{item: i}
	e := audit.Entry{
		ID: r.text("part"), Account: account, Action: audit.Action(r.text("action")), Subject: r.text("subject"),
		Origin: audit.Origin{
			By: r.text("changed_by"), At: time.UnixMilli(r.number("changed_at")).UTC(), RequestID: r.text("request_id"),
		},
	}
	if before := r.text("before"); before != "" {
		e.Before = json.RawMessage(before)
	}
	if after := r.text("after"); after != "" {
		e.After = json.RawMessage(after)
	}
	return e, r.err
}

// note returns the write that adds an entry, for the transaction of its change. No entry
// is written over by another.
func note(table string, e audit.Entry) types.TransactWriteItem {
	return types.TransactWriteItem{Put: &types.Put{
		TableName: &table,
		Item: item{
			"id": text(auditPrefix + e.Account), "part": text(e.ID), "action": text(string(e.Action)),
			"subject": text(e.Subject), "changed_by": text(e.By), "changed_at": number(e.At.UnixMilli()),
			"request_id": text(e.RequestID), "before": text(string(e.Before)), "after": text(string(e.After)),
			ttlAttribute: number(e.At.Add(audit.Kept).Unix()),
		},
		ConditionExpression: aws.String("attribute_not_exists(id)"),
	}}
}
