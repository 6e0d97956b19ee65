package dynamo

import (
	"context"
	"time"

	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/job"
)

// CompareEvery is how often a process compares sets of open jobs with records at most.
const CompareEvery = compareEvery

// Hold takes holds in a separate transaction, and reports which were refused.
func (b *Budgets) Hold(ctx context.Context, claims ...budget.Claim) (failed []bool, err error) {
	err = transact(ctx, b.client, b.claimWrites(claims))
	if refusal := refused(err); refusal != nil {
		return refusal.failed, nil
	}
	return nil, err
}

// Settle settles holds in a separate transaction.
func (b *Budgets) Settle(ctx context.Context, settled ...budget.Settlement) error {
	return transact(ctx, b.client, b.settleWrites(settled))
}

// WriteFailure writes the end of a job and nothing else, like a process that dies after it.
func (r *Runs) WriteFailure(ctx context.Context, id string, failure job.Failure, now time.Time) error {
	return r.writeFailure(ctx, id, "", failure, now)
}

// Capacities returns how many jobs each of an account's sets may have under a limit.
func Capacities(limit int, sizes []int) []int {
	sets := make([][]string, len(sizes))
	for i, size := range sizes {
		sets[i] = make([]string, size)
	}
	return capacities(limit, sets)
}
