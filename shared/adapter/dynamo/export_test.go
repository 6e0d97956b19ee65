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

// BelievedFor is how long the result of a comparison with records is believed.
const BelievedFor = believedFor

// Rooms returns how many ids each set of a limit may have, if an account's sets have so many.
func Rooms(limit int, sizes []int) []int {
	sets := make([]openSet, len(sizes))
	for i, size := range sizes {
		sets[i].elements = make([]string, size)
	}
	return openLimitOf(limit).rooms(sets)
}

// SpreadAtOnce makes every account spread as soon as it has a job.
func (s *Jobs) SpreadAtOnce() *Jobs {
	s.index.sets, s.index.delay = 0, 0
	return s
}

// LargeFrom makes the index be spread for accounts without a limit that have so many open jobs.
func (s *Jobs) LargeFrom(open int) *Jobs {
	s.widths.large = open
	return s
}

// ReadLittle makes lists read few entries of each partition of the index at once.
func (s *Jobs) ReadLittle() *Jobs {
	s.index.unit = 1
	return s
}
