package sqlite

import (
	"context"
	"time"

	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/job"
	"cutroom/shared/service/worker"
)

// TryReceive returns nil if no job is available now.
func (q *Queue) TryReceive(ctx context.Context, lane job.Lane, lease time.Duration) (worker.Delivery, error) {
	received, err := q.tryReceive(ctx, lane, lease)
	if received == nil {
		return nil, err
	}
	return received, err
}

func (b *Budgets) Hold(ctx context.Context, claims ...budget.Claim) (holds []budget.Hold, err error) {
	err = b.db.write(ctx, "hold", func(ctx context.Context, tx *transaction) error {
		holds, err = b.holdBudgets(ctx, tx, claims)
		return err
	})
	return holds, err
}

func (b *Budgets) Settle(ctx context.Context, settled ...budget.Settlement) error {
	return b.db.write(ctx, "settle", func(ctx context.Context, tx *transaction) error {
		return settleBudgets(ctx, tx, settled)
	})
}
