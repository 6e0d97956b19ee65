package dynamo

import (
	"context"
	"time"

	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/job"
)

const CompareEvery = compareEvery

func (b *Budgets) Hold(ctx context.Context, claims ...budget.Claim) (failed []bool, err error) {
	err = transact(ctx, b.client, b.claimWrites(claims))
	if refusal := refused(err); refusal != nil {
		return refusal.failed, nil
	}
	return nil, err
}

func (b *Budgets) Settle(ctx context.Context, settled ...budget.Settlement) error {
	return transact(ctx, b.client, b.settleWrites(settled))
}

// WriteFailure writes a job's failure and then does nothing more, like a process that dies.
func (r *Runs) WriteFailure(ctx context.Context, id string, failure job.Failure, now time.Time) error {
	return r.writeFailure(ctx, id, "", failure, now)
}

func Capacities(limit int, sizes []int) []int {
	sets := make([][]string, len(sizes))
	for i, size := range sizes {
		sets[i] = make([]string, size)
	}
	return capacities(limit, sets)
}
