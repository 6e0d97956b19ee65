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

// auditPrefix plus an account is the partition of the account's entries. An entry's id is its sort key.
const auditPrefix = "audit/"

// Audit is an audit.Log in the usage table, whose TTL deletes old entries.
type Audit struct {
	client *dynamodb.Client
	table  string
}

var _ audit.Log = (*Audit)(nil)

func NewAudit(client *dynamodb.Client, table string) *Audit { return &Audit{client, table} }

func (a *Audit) Entries(ctx context.Context, account string, query audit.Query) (entries []audit.Entry, err error) {
	low, high := query.Range()
	if low >= high {
		return nil, nil
	}
	for i, err := range queried(ctx, a.client, &dynamodb.QueryInput{
		TableName: &a.table, ConsistentRead: aws.Bool(true), ScanIndexForward: aws.Bool(false),
		Limit:                  aws.Int32(int32(query.Limit + 1)), //nolint:gosec // a page has 100 entries at most
		KeyConditionExpression: aws.String("id = :account AND part BETWEEN :low AND :high"),
		ExpressionAttributeValues: item{
			":account": text(auditPrefix + account), ":low": text(low), ":high": text(high),
		},
	}) {
		if err != nil {
			return nil, storeError("read the audit log", err)
		}
		e, err := readAuditEntry(account, i)
		if err != nil {
			return nil, err
		}
		if e.ID == high {
			continue // skip it: BETWEEN includes both limits
		}
		if entries = append(entries, e); len(entries) == query.Limit {
			break
		}
	}
	return entries, nil
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

// note returns the write that adds an entry, for the transaction that makes the change.
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
