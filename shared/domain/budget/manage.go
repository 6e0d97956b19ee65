package budget

import (
	"context"

	"cutroom/shared/domain/audit"
)

// States returns the budgets of an account and of its keys as they are now, in the order of
// key, period and unit.
//
// Errors: those of the store.
func (k *Keeper) States(ctx context.Context, account string) ([]State, error) {
	budgets, err := k.config.Store.Budgets(ctx, account)
	if err != nil {
		return nil, err
	}
	return StatesOf(ctx, k.config.Store, budgets, k.config.Now())
}

// Set creates a budget, or replaces the one of its ID. It is in force in this process at
// once.
//
// Errors: those of the store.
func (k *Keeper) Set(ctx context.Context, from audit.Origin, b Budget) (State, error) {
	if err := k.config.Store.Set(ctx, from, b); err != nil {
		return State{}, err
	}
	k.forget(b.Account)
	states, err := StatesOf(ctx, k.config.Store, []Budget{b}, k.config.Now())
	if err != nil {
		return State{}, err
	}
	return states[0], nil
}

// Delete deletes a budget.
//
// Errors: fault.NotFound; those of the store.
func (k *Keeper) Delete(ctx context.Context, from audit.Origin, id ID) error {
	if err := k.config.Store.Delete(ctx, from, id); err != nil {
		return err
	}
	k.forget(id.Account)
	return nil
}

// forget forgets the budgets that were looked up for an account.
func (k *Keeper) forget(account string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for who := range k.lookUps {
		if who.account == account {
			delete(k.lookUps, who)
		}
	}
}
