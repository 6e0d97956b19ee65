package api

import (
	"context"
	"encoding/json"
	"math"
	"net/http"
	"slices"

	"cutroom/shared/domain/audit"
	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/fault"
)

// Budgets is the group of what an account and its keys may use up, an extension of this
// service (docs/contract/budgets.md#who-sets-them).
func Budgets(s *service) []route {
	return within(credential.KeyRoutes, []route{
		{method: http.MethodGet, path: "/v1/budgets", access: adminOnly, handle: s.listBudgets},
		{method: http.MethodPut, path: "/v1/budgets", access: adminOnly, handle: s.setBudget},
		{method: http.MethodDelete, path: "/v1/budgets", access: adminOnly, handle: s.deleteBudget},
	})
}

// BudgetService manages budgets.
type BudgetService interface {
	// States returns the budgets of an account and of its keys, with what is used of them.
	States(ctx context.Context, account string) ([]budget.State, error)
	// Set creates or replaces a budget, and returns it with what is used of it.
	Set(ctx context.Context, from audit.Origin, b budget.Budget) (budget.State, error)
	// Delete deletes a budget.
	//
	// Errors: fault.NotFound.
	Delete(ctx context.Context, from audit.Origin, id budget.ID) error
}

// budgetBody is a budget as the service shows it.
type budgetBody struct {
	// Key is null for a budget of the whole account.
	Key    *string       `json:"key"`
	Period budget.Period `json:"period"`
	Unit   budget.Unit   `json:"unit"`
	// Currency is null unless the amounts are in one.
	Currency  *string     `json:"currency"`
	Limit     json.Number `json:"limit"`
	Used      json.Number `json:"used"`
	Remaining json.Number `json:"remaining"`
	ResetsAt  *string     `json:"resets_at"`
}

func (s *service) budgetBody(state budget.State) budgetBody {
	amount := func(n int64) json.Number { return json.Number(state.Unit.FormatAmount(n)) }
	body := budgetBody{
		Period: state.Period, Unit: state.Unit, Limit: amount(state.Limit), Used: amount(state.Used),
		Remaining: amount(state.Remaining()), ResetsAt: timestamp(state.Window.Ends()),
	}
	if state.Key != "" {
		body.Key = &state.Key
	}
	if currency := s.Catalog.Currency; state.Unit == budget.Cost && currency != "" {
		body.Currency = &currency
	}
	return body
}

// listBudgets is GET /v1/budgets.
func (s *service) listBudgets(w http.ResponseWriter, r *http.Request, c call) error {
	states, err := s.Budgets.States(r.Context(), c.who.Account())
	if err != nil {
		return err
	}
	bodies := make([]budgetBody, len(states))
	for i, state := range states {
		bodies[i] = s.budgetBody(state)
	}
	s.writeJSON(w, r, http.StatusOK, map[string]any{"budgets": bodies})
	return nil
}

// setBudget is PUT /v1/budgets.
func (s *service) setBudget(w http.ResponseWriter, r *http.Request, c call) error {
	sent, err := readJSON(r)
	if err != nil {
		return err
	}
	b := budget.Budget{}
	key, _, found := sent.text("key")
	period, _, wrong := sent.text("period")
	found = append(found, wrong...)
	unit, _, wrong := sent.text("unit")
	found = append(found, wrong...)
	if len(found) == 0 {
		b.ID, found = budgetID(c, key, period, unit)
	}
	limit, wrong := sent.number("limit", budget.MaxLimit)
	if found = append(found, wrong...); sent.member("limit") == nil {
		found = append(found, missing("limit"))
	}
	b.Limit = int64(limit)
	if b.Unit == budget.Cost {
		b.Limit = int64(math.Round(min(limit*1e9, budget.MaxLimit)))
	}
	if len(found) > 0 {
		return found
	}
	if err := s.ownKey(r.Context(), b.ID); err != nil {
		return err
	}
	state, err := s.Budgets.Set(r.Context(), s.origin(r, c), b)
	if err != nil {
		return err
	}
	s.writeJSON(w, r, http.StatusOK, s.budgetBody(state))
	return nil
}

// deleteBudget is DELETE /v1/budgets?key=&period=&unit=.
func (s *service) deleteBudget(w http.ResponseWriter, r *http.Request, c call) error {
	asked := readQuery(r.URL.RawQuery)
	id, found := budgetID(c, asked["key"], asked["period"], asked["unit"])
	if len(found) > 0 {
		for i := range found {
			found[i] = found[i].in("query")
		}
		return found
	}
	if err := s.ownKey(r.Context(), id); err != nil {
		return err
	}
	if err := s.Budgets.Delete(r.Context(), s.origin(r, c), id); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// budgetID reads which budget is meant.
func budgetID(c call, key, period, unit string) (id budget.ID, found problems) {
	id = budget.ID{
		Account: c.who.Account(), Key: key, Period: budget.Period(period), Unit: budget.Unit(unit),
	}
	switch {
	case period == "":
		found = append(found, missing("period"))
	case !id.Period.Valid():
		found = append(found, notAmong("period", period, []string{string(budget.Day), string(budget.Month)}))
	}
	switch {
	case unit == "":
		found = append(found, missing("unit"))
	case !id.Unit.Valid():
		found = append(found, notAmong("unit", unit, []string{
			string(budget.Cost), string(budget.Tokens), string(budget.Jobs), string(budget.SessionSeconds),
		}))
	}
	return id, found
}

// ownKey fails unless a budget is of a key that the account has. That of the account itself
// is the operator's to change: an admin could raise it otherwise.
func (s *service) ownKey(ctx context.Context, id budget.ID) error {
	if id.Key == "" {
		return fault.New(fault.Forbidden, "The budget of the account is set by whoever runs the service: name a key.")
	}
	keys, err := s.Keys.List(ctx, id.Account)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(keys, func(k credential.Key) bool { return k.ID == id.Key }) {
		return fault.New(fault.NotFound, "There is no such key.")
	}
	return nil
}
