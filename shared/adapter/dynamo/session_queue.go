package dynamo

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"cutroom/shared/domain/session"
)

// queueAttribute is missing if the queue is empty. A write that changes the queue, or needs it
// unchanged, requires that the attribute still has the value that was read.
const queueAttribute = "queue"

// changeQueue returns the condition that the queue has not changed, and the update clauses that write the new queue.
// It adds the parameters of these expressions to the map passed as values.
func (a accountState) changeQueue(values item) (condition, set, remove string) {
	condition = "attribute_not_exists(#queue)"
	if a.queueText != "" {
		condition, values[":seen"] = "#queue = :seen", text(a.queueText)
	}
	switch changed := a.queue.String(); changed {
	case a.queueText:
	case "":
		remove = " REMOVE #queue"
	default:
		set, values[":queue"] = "#queue = :queue", text(changed)
	}
	return condition, set, remove
}

// RenewTickets writes the queue whenever the tickets change, and at intervals of session.RenewTicketsEvery.
func (s *Sessions) RenewTickets(
	ctx context.Context, account, holder string, own []session.Ticket,
) (tickets []session.Ticket, taken int, err error) {
	// Use a batch read, because the instances' role allows no other reads.
	found, err := readItems(ctx, s.client, s.table, []item{accountKey(account)})
	if err != nil {
		return nil, 0, storeError("renew tickets", err)
	}
	current := append(found, nil)[0]
	for range takeTries {
		// The holder's name is not the name of a lease. It is passed only so that the call reads the store's time
		// even if there are no slots.
		a, err := s.stateOf(ctx, account, holder, current)
		if err != nil {
			return nil, 0, storeError("renew tickets", err)
		}
		refused := false
		if a.queue.Renew(holder, own, a.now) {
			if current, refused, err = s.writeQueue(ctx, a); err != nil {
				return nil, 0, storeError("renew tickets", err)
			}
		}
		if !refused {
			return a.queue.Tickets(a.now), a.taken(), nil
		}
	}
	return nil, 0, busy(nil)
}

// writeQueue writes the queue. If another process has changed it, refused is true and current is the account's item.
func (s *Sessions) writeQueue(ctx context.Context, a accountState) (current item, refused bool, err error) {
	values := item{}
	condition, set, remove := a.changeQueue(values)
	if set != "" {
		set = "SET " + set
	}
	return tryUpdate(ctx, s.client, &dynamodb.UpdateItemInput{
		TableName: &s.table, Key: accountKey(a.account), UpdateExpression: aws.String(set + remove),
		ConditionExpression: aws.String(condition), ExpressionAttributeNames: named(queueAttribute),
		ExpressionAttributeValues: values,
	})
}
