package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"cutroom/shared/domain/audit"
	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/webhook"
)

// Budgets is the group for the budgets of an account and of its keys (docs/contract/budgets.md#who-sets-them).
func Budgets(s *service) []route {
	return within(credential.KeyRoutes, []route{
		{method: http.MethodGet, path: "/v1/budgets", access: adminOnly, handle: s.inTurn(s.listBudgets)},
		{method: http.MethodPut, path: "/v1/budgets", access: adminOnly, handle: s.setBudget},
		{method: http.MethodDelete, path: "/v1/budgets", access: adminOnly, handle: s.deleteBudget},
	})
}

type BudgetService interface {
	// States returns the budgets of an account and of its keys, with their usage.
	States(ctx context.Context, account string) ([]budget.State, error)
	Set(ctx context.Context, from audit.Origin, to budget.Setting) (budget.State, error)
	// Errors: fault.NotFound.
	Delete(ctx context.Context, from audit.Origin, id budget.ID) error
}

type budgetFacts struct {
	// Key is null if the budget applies to the entire account.
	Key    *string       `json:"key"`
	Period budget.Period `json:"period"`
	Unit   budget.Unit   `json:"unit"`
	// Currency is null unless the unit is cost.
	Currency  *string     `json:"currency"`
	Limit     json.Number `json:"limit"`
	Used      json.Number `json:"used"`
	Remaining json.Number `json:"remaining"`
	ResetsAt  *string     `json:"resets_at"`
}

type budgetBody struct {
	budgetFacts
	// WarnURL is null if warnings are off.
	WarnURL *string `json:"warn_url"`
}

func (s *service) budgetBody(state budget.State) budgetBody {
	body := budgetBody{budgetFacts: newBudgetFacts(state, s.Catalog.Currency)}
	if state.WarnURL != "" {
		body.WarnURL = &state.WarnURL
	}
	return body
}

func newBudgetFacts(state budget.State, currency string) budgetFacts {
	amount := func(n int64) json.Number { return json.Number(state.Unit.FormatAmount(n)) }
	facts := budgetFacts{
		Period: state.Period, Unit: state.Unit, Limit: amount(state.Limit), Used: amount(state.Used),
		Remaining: amount(state.Remaining()), ResetsAt: timestamp(state.Window.Ends()),
	}
	if state.Key != "" {
		facts.Key = &state.Key
	}
	if state.Unit == budget.Cost && currency != "" {
		facts.Currency = &currency
	}
	return facts
}

// warningBody is the body of a warning webhook. Its bytes are the same in every attempt.
type warningBody struct {
	Type webhook.EventType `json:"type"`
	// Timestamp is when the warning was due.
	Timestamp *string `json:"timestamp"`
	Data      struct {
		Account string `json:"account"`
		// Percent is 80 or 100.
		Percent int `json:"percent"`
		budgetFacts
	} `json:"data"`
}

// WarningBody returns a function that writes warning bodies. Costs are in the given currency.
func WarningBody(currency string) func(budget.Warning) ([]byte, error) {
	return func(w budget.Warning) ([]byte, error) {
		body := warningBody{Type: webhook.BudgetWarning, Timestamp: timestamp(w.At)}
		body.Data.Account, body.Data.Percent = w.Account, w.Percent
		body.Data.budgetFacts = newBudgetFacts(w.State, currency)
		return plainJSON(body)
	}
}

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

func (s *service) setBudget(w http.ResponseWriter, r *http.Request, c call) error {
	sent, err := readJSON(r)
	if err != nil {
		return err
	}
	to := budget.Setting{}
	key, _, found := sent.text("key")
	period, _, wrong := sent.text("period")
	found = append(found, wrong...)
	unit, _, wrong := sent.text("unit")
	found = append(found, wrong...)
	if len(found) == 0 {
		to.ID, found = budgetID(c, key, period, unit)
	}
	to.Limit, wrong = sent.amount("limit", budget.Unit(unit))
	found = append(found, wrong...)
	to.WarnURL, wrong = s.warnURL(sent)
	found = append(found, wrong...)
	if len(found) > 0 {
		return found
	}
	if err := s.ownKey(r.Context(), c.who.Key, to.ID); err != nil {
		return err
	}
	state, err := s.Budgets.Set(r.Context(), s.origin(r, c), to)
	if err != nil {
		return err
	}
	s.writeJSON(w, r, http.StatusOK, s.budgetBody(state))
	return nil
}

// warnURL returns the URL that receives warnings. nil keeps the current one, and "" removes it.
func (s *service) warnURL(sent jsonObject) (*string, problems) {
	const name = "warn_url"
	if _, there := sent[name]; !there {
		return nil, nil
	}
	to, _, found := sent.text(name)
	if len(found) > 0 || to == "" {
		return &to, found
	}
	var invalid *fault.Error
	switch {
	case utf8.RuneCountInString(to) > webhook.MaxURL:
		return nil, problems{valueProblem(name, to, fmt.Sprintf("The URL is longer than %d characters.", webhook.MaxURL))}
	case errors.As(s.WebhookTargets.CheckURL(to), &invalid):
		return nil, problems{valueProblem(name, to, invalid.Message)}
	}
	return &to, nil
}

const maxAmountText = 64

// amount reads an integer, or a cost rounded to a billionth of a unit, up to budget.MaxLimit.
func (o jsonObject) amount(name string, unit budget.Unit) (int64, problems) {
	value := o.member(name)
	if value == nil {
		return 0, problems{missing(name)}
	}
	number, found := o.number(name, budget.MaxLimit)
	if len(found) > 0 {
		return 0, found
	}
	text := string(value)
	if mantissa, _, _ := strings.Cut(strings.ToLower(text), "e"); number == 0 && !strings.ContainsAny(mantissa, "123456789") {
		return 0, nil
	}
	exact, ok := new(big.Rat), number != 0 && len(text) <= maxAmountText // keeps the exponent small
	if ok {
		exact, ok = exact.SetString(text)
	}
	switch {
	case ok && unit == budget.Cost:
		exact.Mul(exact, big.NewRat(billionths, 1))
		exact.SetString(exact.FloatString(0)) // rounds
	case !ok || !exact.IsInt():
		return 0, problems{fieldProblem(name, "int_from_float", value, "Input should be a valid integer", nil)}
	}
	n := exact.Num()
	switch {
	case n.IsInt64() && n.Int64() <= budget.MaxLimit:
		return n.Int64(), nil
	case unit == budget.Cost:
		return budget.MaxLimit, nil
	}
	return 0, problems{aboveMax(name, value, budget.MaxLimit)} // exceeds the limit by less than a float64 can show
}

const billionths = 1_000_000_000

// deleteBudget serves DELETE /v1/budgets?key=&period=&unit=.
func (s *service) deleteBudget(w http.ResponseWriter, r *http.Request, c call) error {
	asked := readQuery(r.URL.RawQuery)
	id, found := budgetID(c, asked["key"], asked["period"], asked["unit"])
	if len(found) > 0 {
		for i := range found {
			found[i] = found[i].in("query")
		}
		return found
	}
	if err := s.ownKey(r.Context(), c.who.Key, id); err != nil {
		return err
	}
	if err := s.Budgets.Delete(r.Context(), s.origin(r, c), id); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

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

// ownKey returns an error unless the budget is for a different key that has no more permissions than the admin key.
// This keeps keys from raising their own limits. Only the operator can change the account's budget.
func (s *service) ownKey(ctx context.Context, by credential.Key, id budget.ID) error {
	switch id.Key {
	case by.ID:
		return fault.New(fault.Forbidden, "A key cannot change its own budget. Use another admin key of the account.")
	case "":
		return fault.New(fault.Forbidden, "Only the operator can set the budget of the account. Name a key.")
	}
	keys, err := s.Keys.List(ctx, id.Account)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(keys, func(k credential.Key) bool { return k.ID == id.Key })
	if at < 0 {
		return fault.New(fault.NotFound, "There is no such key.")
	}
	return by.CheckManages(keys[at])
}
