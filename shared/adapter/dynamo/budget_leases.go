package dynamo

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"cutroom/shared/domain/budget"
)

// shareTries is how often a write of a lease is tried while others change the lease or its counter.
const shareTries = 20

type shareLease struct {
	key                           item
	share, spent, flight, renewed int64
}

func readShareLease(i item) (shareLease, error) {
	r := reader{item: i}
	l := shareLease{
		key: item{"id": i["id"], "part": i["part"]}, share: r.number("taken"), spent: r.number("spent"),
		flight: r.number("flight"), renewed: r.number("renewed_at"),
	}
	return l, r.err
}

// Take makes one query, which returns the rest and DynamoDB's time, and one transaction.
func (b *Budgets) Take(ctx context.Context, l budget.Allocation, limit, least, most int64) (budget.Taken, error) {
	for range shareTries {
		before, err := b.endDead(ctx, l.Counter)
		if err != nil {
			return budget.Taken{}, storeError("take a share", err)
		}
		rest := max(limit-before.used, 0)
		if before.ended && rest < max(least, most) {
			continue // the number lacks the amounts that the ended leases returned
		}
		more := min(rest, max(least, most))
		if more < least {
			return budget.Taken{Amount: l.Amount, Remaining: rest}, nil
		}
		now, _ := b.storeNow()
		err = transact(ctx, b.client, []types.TransactWriteItem{
			b.takeUsed(l.Counter, limit, more), b.setLease(l, l.Amount+more, now),
		})
		switch refusal := refused(err); {
		case err == nil:
			return budget.Taken{Amount: l.Amount + more, Remaining: rest - more}, nil
		case refusal == nil:
			return budget.Taken{}, storeError("take a share", err)
		case refusal.failed[1]:
			was, over, err := foundLease(refusal.items[1], l)
			if over || err != nil {
				return budget.Taken{}, err
			}
			// An earlier write took as much, and its answer was lost.
			if was.share >= l.Amount+least {
				return budget.Taken{Amount: was.share, Remaining: rest}, nil
			}
			l.Amount = was.share
		}
	}
	return budget.Taken{}, busy(errors.New("a counter changes all the time"))
}

// foundLease returns the lease that a refused write found, or reports that the lease is over.
func foundLease(found item, l budget.Allocation) (was shareLease, over bool, err error) {
	if len(found) == 0 {
		return was, true, budget.ErrAllocationEnded
	}
	was, err = readShareLease(found)
	return was, false, err
}

// setLease returns the write that renews a lease and changes its share.
func (b *Budgets) setLease(l budget.Allocation, share, now int64) types.TransactWriteItem {
	condition := "taken = :old"
	if l.Amount == 0 {
		condition = "attribute_not_exists(taken) OR taken = :old"
	}
	return types.TransactWriteItem{Update: &types.Update{
		TableName: &b.table, Key: shareKey(l),
		UpdateExpression: aws.String(
			"SET taken = :share, spent = :spent, flight = :flight, renewed_at = :now, #ttl = :ttl"),
		ConditionExpression: &condition, ExpressionAttributeNames: map[string]string{"#ttl": ttlAttribute},
		ExpressionAttributeValues: item{
			":share": number(share), ":old": number(l.Amount), ":spent": number(l.Spent), ":flight": number(l.Flight),
			":now": number(now), ":ttl": counterEnd(l.Counter),
		},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}}
}

// Tell is one write.
func (b *Budgets) Report(ctx context.Context, l budget.Allocation) error {
	now, known := b.storeNow()
	if !known {
		if _, err := b.query(ctx, counterID(l.Counter), usedPart); err != nil {
			return storeError("record a share", err)
		}
		now, _ = b.storeNow()
	}
	told, err := b.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &b.table, Key: shareKey(l),
		UpdateExpression: aws.String("SET spent = :spent, flight = :flight, renewed_at = :now"),
		// A write that arrives late, after the next one, changes nothing.
		ConditionExpression: aws.String("spent <= :spent"),
		ExpressionAttributeValues: item{
			":spent": number(l.Spent), ":flight": number(l.Flight), ":now": number(now),
		},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if old, failed := conditionFailed(err); failed {
		if len(old) == 0 {
			return budget.ErrAllocationEnded
		}
		return nil
	}
	if err == nil {
		b.hear(told.ResultMetadata)
	}
	return storeError("record a share", err)
}

// Return is one transaction.
func (b *Budgets) Return(ctx context.Context, l budget.Allocation, amount int64) (share int64, err error) {
	now, _ := b.storeNow()
	for range shareTries {
		n := max(min(amount, l.Amount-l.Spent), 0)
		err := transact(ctx, b.client, []types.TransactWriteItem{
			b.returnUsed(l.Counter, n), b.setLease(l, l.Amount-n, now),
		})
		refusal := refused(err)
		if refusal == nil {
			return l.Amount - n, storeError("return a share", err)
		}
		was, over, err := foundLease(refusal.items[1], l)
		if over || err != nil {
			return l.Amount, err
		}
		if n > 0 && was.share == l.Amount-n {
			return was.share, nil // an earlier write did this, and its answer was lost
		}
		l.Amount = was.share
	}
	return l.Amount, busy(errors.New("a lease changes all the time"))
}

// End makes one read and one transaction.
func (b *Budgets) End(ctx context.Context, l budget.Allocation) error {
	for range shareTries {
		items, err := b.query(ctx, counterID(l.Counter), shareLeasePrefix+l.ID)
		if err != nil || len(items) == 0 {
			return storeError("end a share", err)
		}
		// If an answer was lost, the lease has more than its owner knows.
		found, err := readShareLease(items[0])
		if err != nil {
			return err
		}
		found.spent, found.flight = l.Spent, l.Flight
		ended, err := b.endLease(ctx, l.Counter, found, "taken = :share")
		if ended || err != nil {
			return storeError("end a share", err)
		}
	}
	return busy(errors.New("a lease changes all the time"))
}

// endLease ends a lease unless it has changed, and reports whether it did.
func (b *Budgets) endLease(ctx context.Context, c budget.Counter, l shareLease, condition string) (bool, error) {
	values := item{":share": number(l.share)}
	if condition == isSeen {
		values = item{
			":share": number(l.share), ":spent": number(l.spent), ":flight": number(l.flight), ":renewed": number(l.renewed),
		}
	}
	err := transact(ctx, b.client, []types.TransactWriteItem{
		b.returnUsed(c, max(l.share-l.spent-l.flight, 0)),
		{Delete: &types.Delete{
			TableName: &b.table, Key: l.key, ConditionExpression: &condition, ExpressionAttributeValues: values,
		}},
	})
	if refused(err) != nil {
		return false, nil
	}
	return err == nil, err
}

// isSeen is the condition that a lease has not changed since it was read.
const isSeen = "taken = :share AND spent = :spent AND flight = :flight AND renewed_at = :renewed"

// counted is the content of a counter. ended means that leases on it were ended, so the number has
// changed since.
type counted struct {
	used  int64
	ended bool
}

// endDead reads a counter by one query, and ends expired leases on it by one transaction each. What
// their owners recorded as spent and in flight stays used.
func (b *Budgets) endDead(ctx context.Context, c budget.Counter) (read counted, err error) {
	items, err := b.query(ctx, counterID(c), "")
	if err != nil {
		return read, err
	}
	now, _ := b.storeNow()
	for _, i := range items {
		r := reader{item: i}
		if r.text("part") == usedPart {
			if read.used = r.number("used"); r.err != nil {
				return read, r.err
			}
			continue
		}
		l, err := readShareLease(i)
		if err != nil || time.Duration(now-l.renewed)*time.Second < budget.EndAfter {
			continue
		}
		if _, err := b.endLease(ctx, c, l, isSeen); err != nil {
			return read, err
		}
		read.ended = true // here, or by another process
	}
	return read, nil
}

// usedOf returns the used number of a counter once all expired leases on it have ended.
func (b *Budgets) usedOf(ctx context.Context, c budget.Counter) (int64, error) {
	for {
		read, err := b.endDead(ctx, c)
		if err != nil || !read.ended {
			return read.used, err
		}
	}
}

func shareKey(l budget.Allocation) item {
	return item{"id": text(counterID(l.Counter)), "part": text(shareLeasePrefix + l.ID)}
}
