package command

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"cutroom/shared/client"
)

type Quota struct{}

func (Quota) Run(ctx context.Context, s *Invocation) error {
	return s.with(ctx, func(ctx context.Context, service *client.Client) error {
		quota, err := service.Quota(ctx)
		if err != nil {
			return err
		}
		list := s.newList("ACTIVE", "REMAINING", "LIMIT")
		if err := list.add(quota, fmt.Sprint(quota.Active), fmt.Sprint(quota.Remaining),
			fmt.Sprint(quota.Limit)); err != nil {
			return err
		}
		return list.end()
	})
}

type Usage struct {
	From string   `placeholder:"DAY" help:"First day, such as 2026-01-31."`
	To   string   `placeholder:"DAY" help:"Last day."`
	By   []string `placeholder:"WHAT" default:"day,model" enum:"day,model,key,label,account" help:"Columns to group by, in order, separated by commas: ${enum}. Default: day and model."`
	CSV  bool     `name:"csv" help:"Print CSV with all columns, for other programs (RFC 4180)."`
}

func (c *Usage) Run(ctx context.Context, s *Invocation) error {
	if c.CSV && s.JSON {
		return &UsageError{"--csv cannot be used with --json"}
	}
	query := client.UsageQuery{From: c.From, To: c.To, GroupBy: c.By}
	return s.with(ctx, func(ctx context.Context, service *client.Client) error {
		if c.CSV {
			return s.printUsageTable(ctx, service, query)
		}
		used, err := service.Usage(ctx, query)
		if err != nil {
			return err
		}
		var columns []string
		for _, group := range c.By {
			columns = append(columns, strings.ToUpper(group))
		}
		list := s.newList(append(columns, "EDITS", "REQUESTS", "OF BATCHES", "PROMPT TOKENS", "COMPLETION TOKENS",
			"SESSION SECONDS", "COST")...)
		for _, u := range used {
			cost := ""
			if u.Cost > 0 {
				cost = fmt.Sprintf("%.9g %s", u.Cost, u.Currency)
			}
			of := map[string]string{"day": u.Day, "model": u.Model, "key": u.Key, "label": u.Label, "account": u.Account}
			var cells []string
			for _, group := range c.By {
				cells = append(cells, of[group])
			}
			if err := list.add(u, append(cells, fmt.Sprint(u.Jobs), fmt.Sprint(u.Requests), fmt.Sprint(u.BatchRequests),
				fmt.Sprint(u.PromptTokens), fmt.Sprint(u.CompletionTokens), fmt.Sprint(u.SessionSeconds), cost)...); err != nil {
				return err
			}
		}
		return list.end()
	})
}

func (s *Invocation) printUsageTable(ctx context.Context, service *client.Client, query client.UsageQuery) error {
	table, err := service.UsageTable(ctx, query)
	if err != nil {
		return err
	}
	for line := range strings.Lines(table) {
		if err := s.printLine(strings.TrimRight(line, "\r\n")); err != nil {
			return err
		}
	}
	return nil
}

type Token struct {
	Expires int      `placeholder:"SECONDS" help:"Lifetime, 1 to 3600; default: 60."`
	Model   []string `short:"m" predictor:"model" placeholder:"MODEL" help:"A model that the token may use, by id or alias; repeatable. Default: all models."`
	Origin  []string `placeholder:"ORIGIN" help:"An origin that the token may be used from, such as https://app.example.com; repeatable. Default: any."`
}

func (c *Token) Run(ctx context.Context, s *Invocation) error {
	return s.with(ctx, func(ctx context.Context, service *client.Client) error {
		token, err := service.CreateToken(ctx, client.TokenRequest{ExpiresIn: c.Expires, AllowedModels: c.Model,
			AllowedOrigins: c.Origin})
		if err != nil {
			return err
		}
		if s.JSON {
			return s.Print(token.Raw)
		}
		s.note("the token is valid until %s", local(&token.ExpiresAt))
		return s.printLine(token.APIKey)
	})
}

type Models struct{}

type modelView struct {
	ID string `json:"id"`
	// Service is "media" or "inference".
	Service     string   `json:"service"`
	Kind        string   `json:"kind,omitempty"`
	Title       string   `json:"title,omitempty"`
	Aliases     []string `json:"aliases,omitempty"`
	Description string   `json:"description,omitempty"`
	Examples    []string `json:"examples,omitempty"`

	Price           *client.Price `json:"price,omitempty"`
	Capabilities    []string      `json:"capabilities,omitempty"`
	ContextLength   int           `json:"context_length,omitempty"`
	MaxOutputLength int           `json:"max_output_length,omitempty"`
}

func (Models) Run(ctx context.Context, s *Invocation) error {
	return s.with(ctx, func(ctx context.Context, service *client.Client) error {
		media, err := service.MediaModels(ctx)
		if err != nil {
			return err
		}
		inference, err := service.InferenceModels(ctx)
		if err != nil {
			return err
		}
		list := s.newList("MODEL", "SERVICE", "KIND", "ALIASES", "WHAT IT DOES")
		for _, m := range media {
			view := modelView{
				ID: m.ID, Service: "media", Kind: m.Kind, Title: m.Title, Aliases: m.Aliases, Description: m.Description,
				Examples: m.Examples, Price: m.Price,
			}
			aliases, what := cmp.Or(strings.Join(m.Aliases, ", "), "-"), cmp.Or(m.Title, m.Description)
			if len(m.Examples) > 0 {
				what += ", such as “" + m.Examples[0] + "”"
			}
			if m.Price != nil {
				what += fmt.Sprintf("; %g %s for each %s", m.Price.Amount, m.Price.Currency, m.Price.Per)
				for _, resolution := range slices.Sorted(maps.Keys(m.Price.Sizes)) {
					what += fmt.Sprintf(", %g in %s", m.Price.Sizes[resolution], resolution)
				}
			}
			if err := list.add(view, m.ID, view.Service, cmp.Or(m.Kind, "-"), aliases, what); err != nil {
				return err
			}
		}
		for _, m := range inference {
			view := modelView{
				ID: m.ID, Service: "inference", Kind: "text", Capabilities: m.Capabilities,
				ContextLength: m.ContextLength, MaxOutputLength: m.MaxOutputLength,
			}
			what := fmt.Sprintf("%s; up to %d of %d tokens", strings.Join(m.Capabilities, ", "), m.MaxOutputLength,
				m.ContextLength)
			if err := list.add(view, m.ID, view.Service, "text", "-", what); err != nil {
				return err
			}
		}
		return list.end()
	})
}
