package dynamo

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/job"
)

// A job's budget holds are in its record, and each hold is also an allocation next to its counter. The transaction
// that completes the job ends the allocations. A process that ends the job in another way ends them after writing the
// record. Otherwise they expire holdSlack after the job's deadline, when the job can no longer complete.
const holdSlack = 5 * time.Minute

func holdsOf(claims []budget.Claim) []budget.Hold {
	var holds []budget.Hold
	for _, c := range claims {
		holds = append(holds, budget.Hold{Counter: c.Counter, Amount: c.Amount})
	}
	return holds
}

func holdKey(h budget.Hold, id string) item {
	return allocationKey(budget.Allocation{Counter: h.Counter, ID: id})
}

func (b *Budgets) noteHold(j job.Job, h budget.Hold) types.TransactWriteItem {
	return types.TransactWriteItem{Update: &types.Update{
		TableName: &b.table, Key: holdKey(h, j.ID),
		UpdateExpression:         aws.String("SET taken = :amount, spent = :none, flight = :none, renewed_at = :until, #ttl = :ttl"),
		ExpressionAttributeNames: map[string]string{"#ttl": ttlAttribute},
		ExpressionAttributeValues: item{
			":amount": number(h.Amount), ":none": number(0), ":ttl": counterEnd(h.Counter),
			":until": number(j.Deadline.Add(holdSlack - budget.EndAfter).Unix()),
		},
	}}
}

// The first write's condition fails if the hold has already ended.
func (b *Budgets) settleHold(id string, s budget.Settlement) []types.TransactWriteItem {
	return append([]types.TransactWriteItem{{Delete: &types.Delete{
		TableName: &b.table, Key: holdKey(s.Hold, id), ConditionExpression: aws.String("attribute_exists(taken)"),
	}}}, b.settleWrites([]budget.Settlement{s})...)
}

var errNoBudgets = errors.New("job has budget holds, but no budget store is configured")

// settle ends an ended job's remaining holds, with one transaction for each.
func (r *Runs) settle(ctx context.Context, ended job.Job) error {
	if len(ended.Holds) > 0 && r.budgets == nil {
		return nil // the holds expire after holdSlack
	}
	for _, s := range job.Settled(ended) {
		err := transact(ctx, r.client, r.budgets.settleHold(ended.ID, s))
		if err != nil && refused(err) == nil {
			return err
		}
	}
	return nil
}
