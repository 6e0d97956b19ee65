package budget

import (
	"context"
	"slices"

	"cutroom/shared/domain/audit"
)

// States returns the current budgets of an account and its keys, sorted by key, period and unit.
func (m *Manager) States(ctx context.Context, account string) ([]State, error) {
	budgets, err := m.config.Store.Budgets(ctx, account)
	if err != nil {
		return nil, err
	}
	return StatesOf(ctx, m.config.Store, budgets, m.config.Now())
}

type Setting struct {
	ID
	Limit int64
	// WarnURL receives warnings. nil keeps the current URL. Empty disables warnings.
	WarnURL *string
}

// Set creates or replaces a budget. The change applies immediately in this process. If the limit is
// lowered, a warning may become due.
func (m *Manager) Set(ctx context.Context, from audit.Origin, s Setting) (State, error) {
	b := Budget{ID: s.ID, Limit: s.Limit}
	if s.WarnURL != nil {
		b.WarnURL = *s.WarnURL
	} else {
		all, err := m.config.Store.Budgets(ctx, s.Account)
		if err != nil {
			return State{}, err
		}
		if i := slices.IndexFunc(all, func(b Budget) bool { return b.ID == s.ID }); i >= 0 {
			b.WarnURL = all[i].WarnURL
		}
	}
	if err := m.config.Store.Set(ctx, from, b); err != nil {
		return State{}, err
	}
	m.forget(b.Account)
	m.warn(ctx, b.Counter(m.config.Now()), 0)
	states, err := StatesOf(ctx, m.config.Store, []Budget{b}, m.config.Now())
	if err != nil {
		return State{}, err
	}
	return states[0], nil
}

// Errors: fault.NotFound.
func (m *Manager) Delete(ctx context.Context, from audit.Origin, id ID) error {
	if err := m.config.Store.Delete(ctx, from, id); err != nil {
		return err
	}
	m.forget(id.Account)
	return nil
}

func (m *Manager) forget(account string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for who := range m.lookUps {
		if who.account == account {
			delete(m.lookUps, who)
		}
	}
}
