package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"cutroom/cmd/cutroom/command"
	"cutroom/shared/app/setting"
	"cutroom/shared/domain/audit"
	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/webhook"
)

// budgetsCommand manages the budgets of accounts and keys (docs/contract/budgets.md), in the data
// folder or, like keysCommand, in AWS. Servers notice a change within a minute.
type budgetsCommand struct {
	List   budgetsList   `cmd:"" aliases:"ls" help:"List the budgets of an account and its keys, with the amounts used."`
	Set    budgetsSet    `cmd:"" help:"Set the budget of an account or a key for a day or a month."`
	Delete budgetsDelete `cmd:"" help:"Delete a budget."`
}

type budgetFlags struct {
	keysFlags
	Account string `required:"" help:"Account (organization) of the budget."`
	Key     string `placeholder:"ID" help:"Id of the key to which the budget applies; by default the entire account."`
	Period  string `required:"" enum:"day,month" help:"Period: day or month, by the calendar in UTC."`
	Unit    string `default:"cost" enum:"cost,tokens,jobs,session_seconds" help:"Counted unit: ${enum}."`
}

func (f budgetFlags) id() budget.ID {
	return budget.ID{Account: f.Account, Key: f.Key, Period: budget.Period(f.Period), Unit: budget.Unit(f.Unit)}
}

type budgetsSet struct {
	budgetFlags
	Limit   string  `required:"" placeholder:"AMOUNT" help:"Amount: for cost in the currency of the catalog, such as 12.50; otherwise an integer."`
	WarnURL *string `placeholder:"URL" help:"URL that receives a signed POST when 80 and 100 percent are used: a public https URL as for job webhooks, or empty for no warnings. Without this flag the URL does not change."`
	webhookFlags
}

func (c *budgetsSet) Run(ctx context.Context, out *command.Invocation) error {
	id := c.id()
	limit, err := id.Unit.ParseAmount(c.Limit)
	if err != nil {
		return fmt.Errorf("--limit: %w", err)
	}
	if err := c.checkWarnURL(); err != nil {
		return err
	}
	return c.withRecords(ctx, func(r managed) error {
		if err := r.checkKey(ctx, id); err != nil {
			return err
		}
		manager := budget.NewManager(budget.ManagerConfig{
			Store: r.budgets, Now: time.Now, Logger: slog.New(slog.NewTextHandler(out.Err, nil)),
		})
		set, err := manager.Set(ctx, audit.Operator(time.Now()), budget.Setting{ID: id, Limit: limit, WarnURL: c.WarnURL})
		if err != nil {
			return err
		}
		return printBudgets(out, []budget.State{set})
	})
}

func (c *budgetsSet) checkWarnURL() error {
	if c.WarnURL == nil || *c.WarnURL == "" {
		return nil
	}
	targets, err := setting.WebhookTargets(c.WebhookAllow)
	if err == nil {
		err = targets.CheckURL(*c.WarnURL)
	}
	if err == nil && utf8.RuneCountInString(*c.WarnURL) > webhook.MaxURL {
		err = fmt.Errorf("it is longer than %d characters", webhook.MaxURL)
	}
	if err != nil {
		return fmt.Errorf("--warn-url: %w", err)
	}
	return nil
}

type budgetsList struct {
	keysFlags
	Account string `required:"" help:"Account (organization) whose budgets to list."`
}

func (c *budgetsList) Run(ctx context.Context, out *command.Invocation) error {
	return c.withRecords(ctx, func(r managed) error {
		budgets, err := r.budgets.Budgets(ctx, c.Account)
		if err != nil {
			return err
		}
		states, err := budget.StatesOf(ctx, r.budgets, budgets, time.Now())
		if err != nil {
			return err
		}
		return printBudgets(out, states)
	})
}

type budgetsDelete struct{ budgetFlags }

func (c *budgetsDelete) Run(ctx context.Context, out *command.Invocation) error {
	return c.withRecords(ctx, func(r managed) error {
		err := r.budgets.Delete(ctx, audit.Operator(time.Now()), c.id())
		if fault.Is(err, fault.NotFound) {
			return fmt.Errorf("%s has no such budget; \"cutroom budgets list\" shows its budgets", cmp.Or(c.Key, c.Account))
		}
		if err == nil && !out.JSON {
			fmt.Fprintln(out.Out, "The budget was deleted. Servers stop applying it within a minute.")
		}
		return err
	})
}

func (r managed) checkKey(ctx context.Context, id budget.ID) error {
	if id.Key == "" {
		return nil
	}
	keys, err := r.keys.ListKeys(ctx, id.Account)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(keys, func(k credential.Key) bool { return k.ID == id.Key }) {
		return fmt.Errorf("the account %s has no key %s", id.Account, id.Key)
	}
	return nil
}

type budgetView struct {
	Account   string      `json:"account"`
	Key       string      `json:"key,omitempty"`
	Period    string      `json:"period"`
	Unit      string      `json:"unit"`
	Limit     json.Number `json:"limit"`
	Used      json.Number `json:"used"`
	Remaining json.Number `json:"remaining"`
	ResetsAt  string      `json:"resets_at"`
	WarnURL   string      `json:"warn_url,omitempty"`
}

func printBudgets(out *command.Invocation, states []budget.State) error {
	table := tabwriter.NewWriter(out.Out, 0, 0, 2, ' ', 0)
	if !out.JSON {
		fmt.Fprintln(table, "SCOPE\tPERIOD\tUNIT\tLIMIT\tUSED\tREMAINING\tRESETS\tWARNS")
	}
	for _, s := range states {
		amount := func(n int64) json.Number { return json.Number(s.Unit.FormatAmount(n)) }
		view := budgetView{
			s.Account, s.Key, string(s.Period), string(s.Unit), amount(s.Limit), amount(s.Used), amount(s.Remaining()),
			s.Window.Ends().Format(time.RFC3339), s.WarnURL,
		}
		if out.JSON {
			if err := out.Print(view); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", cmp.Or(view.Key, "account"), view.Period, view.Unit,
			view.Limit, view.Used, view.Remaining, view.ResetsAt, cmp.Or(view.WarnURL, "-"))
	}
	return table.Flush()
}
