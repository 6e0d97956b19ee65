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

// allocationTries is the maximum number of attempts to write an allocation while others change it or its counter.
const allocationTries = 20

type storedAllocation struct {
	key                            item
	amount, spent, flight, renewed int64
}

func readAllocation(i item) (storedAllocation, error) {
	r := reader{item: i}
	l := storedAllocation{
		key: item{"id": i["id"], "part": i["part"]}, amount: r.number("taken"), spent: r.number("spent"),
		flight: r.number("flight"), renewed: r.number("renewed_at"),
	}
	return l, r.err
}

// Take's query also updates the time that storeNow returns.
func (b *Budgets) Take(ctx context.Context, l budget.Allocation, limit, least, most int64) (budget.Taken, error) {
	for range allocationTries {
		before, err := b.endDead(ctx, l.Counter)
		if err != nil {
			return budget.Taken{}, storeError("take an allocation", err)
		}
		rest := max(limit-before.used, 0)
		if before.ended && rest < max(least, most) {
			continue // before.used still includes the unused amounts of the ended allocations
		}
		more := min(rest, max(least, most))
		if more < least {
			return budget.Taken{Amount: l.Amount, Remaining: rest}, nil
		}
		now, _ := b.storeNow()
		err = transact(ctx, b.client, []types.TransactWriteItem{
			b.takeUsed(l.Counter, limit, more), b.setAllocation(l, l.Amount+more, now),
		})
		switch refusal := refused(err); {
		case err == nil:
			return budget.Taken{Amount: l.Amount + more, Remaining: rest - more}, nil
		case refusal == nil:
			return budget.Taken{}, storeError("take an allocation", err)
		case refusal.failed[1]:
			was, over, err := foundAllocation(refusal.items[1], l)
			if over || err != nil {
				return budget.Taken{}, err
			}
			// An earlier write took enough, but its response was lost.
			if was.amount >= l.Amount+least {
				return budget.Taken{Amount: was.amount, Remaining: rest}, nil
			}
			l.Amount = was.amount
		}
	}
	return budget.Taken{}, busy(errors.New("the counter keeps changing"))
}

// foundAllocation returns the allocation that a failed condition returned, or reports that it has ended.
func foundAllocation(found item, l budget.Allocation) (was storedAllocation, over bool, err error) {
	if len(found) == 0 {
		return was, true, budget.ErrAllocationEnded
	}
	was, err = readAllocation(found)
	return was, false, err
}

func (b *Budgets) setAllocation(l budget.Allocation, amount, now int64) types.TransactWriteItem {
	condition := "taken = :old"
	if l.Amount == 0 {
		condition = "attribute_not_exists(taken) OR taken = :old"
	}
	return types.TransactWriteItem{Update: &types.Update{
		TableName: &b.table, Key: allocationKey(l),
		UpdateExpression: aws.String(
			"SET taken = :amount, spent = :spent, flight = :flight, renewed_at = :now, #ttl = :ttl"),
		ConditionExpression: &condition, ExpressionAttributeNames: map[string]string{"#ttl": ttlAttribute},
		ExpressionAttributeValues: item{
			":amount": number(amount), ":old": number(l.Amount), ":spent": number(l.Spent), ":flight": number(l.Flight),
			":now": number(now), ":ttl": counterEnd(l.Counter),
		},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}}
}

func (b *Budgets) Report(ctx context.Context, l budget.Allocation) error {
	now, known := b.storeNow()
	if !known {
		if _, err := b.query(ctx, counterID(l.Counter), usedPart); err != nil {
			return storeError("record an allocation", err)
		}
		now, _ = b.storeNow()
	}
	result, err := b.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &b.table, Key: allocationKey(l),
		UpdateExpression: aws.String("SET spent = :spent, flight = :flight, renewed_at = :now"),
		// A delayed write must not overwrite later values.
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
		b.noteTime(result.ResultMetadata)
	}
	return storeError("record an allocation", err)
}

func (b *Budgets) Return(ctx context.Context, l budget.Allocation, amount int64) (held int64, err error) {
	now, _ := b.storeNow()
	for range allocationTries {
		n := max(min(amount, l.Amount-l.Spent), 0)
		err := transact(ctx, b.client, []types.TransactWriteItem{
			b.returnUsed(l.Counter, n), b.setAllocation(l, l.Amount-n, now),
		})
		refusal := refused(err)
		if refusal == nil {
			return l.Amount - n, storeError("return an allocation", err)
		}
		was, over, err := foundAllocation(refusal.items[1], l)
		if over || err != nil {
			return l.Amount, err
		}
		if n > 0 && was.amount == l.Amount-n {
			return was.amount, nil // an earlier write did this, but its response was lost
		}
		l.Amount = was.amount
	}
	return l.Amount, busy(errors.New("the allocation keeps changing"))
}

func (b *Budgets) End(ctx context.Context, l budget.Allocation) error {
	for range allocationTries {
		items, err := b.query(ctx, counterID(l.Counter), allocationPrefix+l.ID)
		if err != nil || len(items) == 0 {
			return storeError("end an allocation", err)
		}
		// If a response was lost, the allocation is larger than its owner knows.
		found, err := readAllocation(items[0])
		if err != nil {
			return err
		}
		found.spent, found.flight = l.Spent, l.Flight
		ended, err := b.endAllocation(ctx, l.Counter, found, "taken = :amount")
		if ended || err != nil {
			return storeError("end an allocation", err)
		}
	}
	return busy(errors.New("the allocation keeps changing"))
}

// endAllocation ends an allocation unless it has changed, and reports whether it ended the allocation.
func (b *Budgets) endAllocation(ctx context.Context, c budget.Counter, l storedAllocation, condition string) (bool, error) {
	values := item{":amount": number(l.amount)}
	if condition == isSeen {
		values = item{
			":amount": number(l.amount), ":spent": number(l.spent), ":flight": number(l.flight), ":renewed": number(l.renewed),
		}
	}
	err := transact(ctx, b.client, []types.TransactWriteItem{
		b.returnUsed(c, max(l.amount-l.spent-l.flight, 0)),
		{Delete: &types.Delete{
			TableName: &b.table, Key: l.key, ConditionExpression: &condition, ExpressionAttributeValues: values,
		}},
	})
	if refused(err) != nil {
		return false, nil
	}
	return err == nil, err
}

// isSeen is true if an allocation has not changed since it was read.
const isSeen = "taken = :amount AND spent = :spent AND flight = :flight AND renewed_at = :renewed"

// counted is the state of a counter. ended means that allocations were ended, so used is out of date.
type counted struct {
	used  int64
	ended bool
}

// endDead reads a counter and ends expired allocations. Amounts that their owners reported as spent
// or in flight stay used.
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
		l, err := readAllocation(i)
		if err != nil || time.Duration(now-l.renewed)*time.Second < budget.EndAfter {
			continue
		}
		if _, err := b.endAllocation(ctx, c, l, isSeen); err != nil {
			return read, err
		}
		read.ended = true // by this process or another
	}
	return read, nil
}

// usedOf ends all expired allocations and returns the counter's used amount.
func (b *Budgets) usedOf(ctx context.Context, c budget.Counter) (int64, error) {
	for {
		read, err := b.endDead(ctx, c)
		if err != nil || !read.ended {
			return read.used, err
		}
	}
}

func allocationKey(l budget.Allocation) item {
	return item{"id": text(counterID(l.Counter)), "part": text(allocationPrefix + l.ID)}
}
