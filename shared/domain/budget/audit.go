package budget

import (
	"encoding/json"
	"fmt"
	"net/url"

	"cutroom/shared/domain/audit"
)

type facts struct {
	Key    *string     `json:"key"`
	Period Period      `json:"period"`
	Unit   Unit        `json:"unit"`
	Limit  json.Number `json:"limit"`
	// WarnHost is the host of WarnURL. The path is omitted because it may contain a secret.
	WarnHost string `json:"warn_host,omitempty"`
}

// Entry returns the audit entry for a change. before is nil for a new budget, and after is nil for a deleted budget.
func Entry(from audit.Origin, before, after *Budget) (audit.Entry, error) {
	action, id := audit.BudgetSet, ID{}
	var states [2]any
	for i, b := range []*Budget{before, after} {
		if b == nil {
			continue
		}
		f := facts{Period: b.Period, Unit: b.Unit, Limit: json.Number(b.Unit.FormatAmount(b.Limit))}
		if b.Key != "" {
			f.Key = &b.Key
		}
		if to, err := url.Parse(b.WarnURL); err == nil {
			f.WarnHost = to.Host
		}
		states[i], id = f, b.ID
	}
	if after == nil {
		action = audit.BudgetDeleted
	}
	scope := id.Key
	if scope == "" {
		scope = "account"
	}
	return audit.New(from, id.Account, action, fmt.Sprintf("%s/%s/%s", scope, id.Period, id.Unit), states[0], states[1])
}
