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

// What a job holds of budgets is in its record, and beside each counter as a lease whose
// id is that of the job. The transaction that completes the job ends it. So does whoever
// ends the job otherwise, after its record is written. Where nobody does, because the state
// machine has written the end or a process died, it ends as any lease does that is not
// renewed: holdSlack after the job's deadline, when it can no longer complete.
const holdSlack = 5 * time.Minute

// holdsOf returns what a job has taken by its claims.
func holdsOf(claims []budget.Claim) []budget.Hold {
	var holds []budget.Hold
	for _, c := range claims {
		holds = append(holds, budget.Hold{Counter: c.Counter, Amount: c.Amount})
	}
	return holds
}

func holdKey(h budget.Hold, id string) item {
	return shareKey(budget.Lease{Counter: h.Counter, ID: id})
}

// noteHold returns the write of the lease that stands for what a job holds.
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

// settleHold returns the writes that end what a job holds: the first is refused if that has
// ended.
func (b *Budgets) settleHold(id string, s budget.Settlement) []types.TransactWriteItem {
	return append([]types.TransactWriteItem{{Delete: &types.Delete{
		TableName: &b.table, Key: holdKey(s.Hold, id), ConditionExpression: aws.String("attribute_exists(taken)"),
	}}}, b.settleWrites([]budget.Settlement{s})...)
}

// errNoBudgets is the error of a program that was made without budgets for a job that has
// to do with some.
var errNoBudgets = errors.New("the program knows no budgets, and the job holds of some")

// settle ends what a job that has ended holds, one transaction for each hold. What has ended
// already is left alone.
func (r *Runs) settle(ctx context.Context, ended job.Job) error {
	if len(ended.Holds) > 0 && r.budgets == nil {
		return nil // they end by themselves
	}
	for _, s := range job.Settled(ended) {
		err := transact(ctx, r.client, r.budgets.settleHold(ended.ID, s))
		if err != nil && refused(err) == nil {
			return err
		}
	}
	return nil
}
