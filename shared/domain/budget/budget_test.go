package budget_test

import (
	"testing"
	"time"

	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/fault"
	"cutroom/shared/testkit/conformance"
)

func at(t *testing.T, text string) time.Time {
	t.Helper()
	parsed, err := time.Parse(time.RFC3339, text)
	conformance.OK(t, err)
	return parsed
}

// A window is a calendar day or month in UTC, whatever the time's zone.
func TestWindowsAreInUTC(t *testing.T) {
	for _, c := range []struct {
		period   budget.Period
		at, want string
		ends     string
	}{
		{budget.Day, "2026-02-28T23:59:59Z", "2026-02-28", "2026-03-01T00:00:00Z"},
		{budget.Day, "2026-03-01T00:00:00Z", "2026-03-01", "2026-03-02T00:00:00Z"},
		{budget.Day, "2026-03-01T01:30:00+02:00", "2026-02-28", "2026-03-01T00:00:00Z"},
		{budget.Day, "2028-02-28T12:00:00Z", "2028-02-28", "2028-02-29T00:00:00Z"},
		{budget.Month, "2026-02-28T23:59:59Z", "2026-02", "2026-03-01T00:00:00Z"},
		{budget.Month, "2026-12-31T20:00:00-05:00", "2027-01", "2027-02-01T00:00:00Z"},
		{budget.Month, "2026-12-31T12:00:00Z", "2026-12", "2027-01-01T00:00:00Z"},
	} {
		window := c.period.WindowOf(at(t, c.at))
		if string(window) != c.want || !window.Ends().Equal(at(t, c.ends)) {
			t.Errorf("the %s of %s is %s and ends at %s", c.period, c.at, window, window.Ends())
		}
	}
	if !budget.Window("soon").Ends().IsZero() {
		t.Error("an invalid window has an end")
	}
}

func TestClaimsCoverAccountAndKey(t *testing.T) {
	budgets := []budget.Budget{
		{ID: budget.ID{Account: "acme", Period: budget.Day, Unit: budget.Cost}, Limit: 10},
		{ID: budget.ID{Account: "acme", Period: budget.Month, Unit: budget.Jobs}, Limit: 20},
		{ID: budget.ID{Account: "acme", Key: "key_1", Period: budget.Month, Unit: budget.Cost}, Limit: 30},
		{ID: budget.ID{Account: "acme", Key: "key_2", Period: budget.Month, Unit: budget.Cost}, Limit: 40},
	}
	got := budget.Claims(budgets, "key_1", budget.Amounts{Cost: 7, Tokens: 9}, at(t, "2026-02-03T04:05:06Z"))
	conformance.Same(t, "the claims", got, []budget.Claim{
		{Counter: budget.Counter{ID: budgets[0].ID, Window: "2026-02-03"}, Limit: 10, Amount: 7},
		{Counter: budget.Counter{ID: budgets[2].ID, Window: "2026-02"}, Limit: 30, Amount: 7},
	})
}

func TestSettleReturnsUnusedAmount(t *testing.T) {
	hold := budget.Hold{
		Counter: budget.Counter{ID: budget.ID{Account: "acme", Period: budget.Day, Unit: budget.Cost}}, Amount: 10,
	}
	for used, want := range map[int64]int64{0: 10, 4: 6, 10: 0, 11: 0, -1: 10} {
		settled := budget.Settle([]budget.Hold{hold}, budget.Amounts{Cost: used, Tokens: 99})
		if got := settled[0].Returned(); got != want {
			t.Errorf("used %d of 10, %d return", used, got)
		}
	}
}

func TestExhaustedBudgetErrorNamesNextPeriod(t *testing.T) {
	counter := budget.Counter{
		ID: budget.ID{Account: "acme", Key: "key_1", Period: budget.Month, Unit: budget.Cost}, Window: "2026-02",
	}
	err := budget.UsedUp(counter, at(t, "2026-02-28T23:00:00Z"))
	conformance.Fails(t, err, fault.Exhausted)
	const want = "The remaining key budget of cost for 2026-02 is too small for this call. " +
		"The next period begins at 2026-03-01T00:00:00Z."
	if err.Message != want || err.RetryAfter != time.Hour {
		t.Errorf("%q, after %s", err.Message, err.RetryAfter)
	}
	if late := budget.UsedUp(counter, at(t, "2026-03-01T00:00:01Z")); late.RetryAfter != time.Second {
		t.Errorf("after the window's end: %s", late.RetryAfter)
	}
}

func TestAmountsAreParsedAndFormatted(t *testing.T) {
	for _, c := range []struct {
		unit budget.Unit
		text string
		want int64
		back string
	}{
		{budget.Cost, "12.50", 12_500_000_000, "12.5"}, {budget.Cost, "0", 0, "0"},
		{budget.Cost, "0.000000001", 1, "0.000000001"}, {budget.Cost, "1000000000", 1e18, "1000000000"},
		{budget.Tokens, "5000000", 5_000_000, "5000000"}, {budget.Jobs, "0", 0, "0"},
	} {
		if n, err := c.unit.ParseAmount(c.text); n != c.want || err != nil || c.unit.FormatAmount(n) != c.back {
			t.Errorf("%s of %s: %d, %v, %s", c.text, c.unit, n, err, c.unit.FormatAmount(n))
		}
	}
	for _, text := range []string{"", "-1", "1e3", "0x1", "1.0000000001", "1000000000.1", "9999999999", ".5", "5.", " 1"} {
		if n, err := budget.Cost.ParseAmount(text); err == nil {
			t.Errorf("a cost of %q is %d", text, n)
		}
	}
	for _, text := range []string{"", "-1", "1.5", "1000000000000000001", "99999999999999999999"} {
		if n, err := budget.Tokens.ParseAmount(text); err == nil {
			t.Errorf("%q tokens are %d", text, n)
		}
	}
}
