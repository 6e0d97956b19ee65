package dynamo

import (
	"context"

	"cutroom/shared/domain/budget"
)

// Hold takes holds in a transaction of their own, and reports which were refused.
func (b *Budgets) Hold(ctx context.Context, claims ...budget.Claim) (failed []bool, err error) {
	err = transact(ctx, b.client, b.claimWrites(claims))
	if refusal := refused(err); refusal != nil {
		return refusal.failed, nil
	}
	return nil, err
}

// Settle settles holds in a transaction of their own.
func (b *Budgets) Settle(ctx context.Context, settled ...budget.Settlement) error {
	return transact(ctx, b.client, b.settleWrites(settled))
}
