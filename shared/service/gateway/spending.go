package gateway

import (
	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/usage"
	"cutroom/shared/service/gateway/apierror"
)

// promptOverhead is the number of tokens that a chat template may add to a prompt.
const promptOverhead = 512

// reserve reserves the maximum usage of the call in its budgets, or adjusts it for a fallback row
// (docs/contract/budgets.md#what-counts).
func (c *completion) reserve() *apierror.Error {
	if c.gateway.config.Budgets == nil || c.route == catalog.CountTokens {
		return nil
	}
	ctx := c.r.Context()
	if c.reserved != nil {
		if err := c.reserved.Change(ctx, c.most()); err != nil {
			return c.internal(err)
		}
		return nil
	}
	found, err := c.gateway.config.Budgets.Find(ctx, c.who.Account(), c.who.Key.ID)
	if err != nil {
		return c.internal(err)
	}
	if len(found) == 0 {
		return nil
	}
	if c.reserved, err = c.gateway.config.Budgets.Reserve(ctx, found, c.most()); err != nil {
		return c.internal(err)
	}
	return nil
}

// most returns the maximum usage of the call. The prompt has at most one token per byte of the body, because JSON
// never shortens text.
func (c *completion) most() budget.Amounts {
	row := c.request.Model
	if c.route.IsAudio() {
		most := c.audioCounts(leastAudio)
		return amounts(row, billed(most), most.AudioSeconds+most.Characters, 0)
	}
	prompts, completions := int64(1), int64(c.request.Completions)
	switch c.route {
	case catalog.Completions, catalog.Embeddings, catalog.Rerank, catalog.Score:
		prompts = completions
	}
	longest := prompts * int64(row.ContextLength)
	prompt := int64(len(c.request.Raw())) + promptOverhead
	if c.route == catalog.Rerank || c.route == catalog.Score {
		prompt *= prompts // the query is read again with each document
	}
	if !c.request.TextOnly {
		prompt = longest
	}
	prompt = min(prompt, longest)
	generated := int64(0)
	if c.route.Generates() {
		generated = completions * int64(c.request.MostTokens)
	}
	return amounts(row, prompt+generated, prompt, generated)
}

func amounts(row *catalog.Inference, tokens, prompt, generated int64) budget.Amounts {
	most := budget.Amounts{Tokens: tokens}
	if row.Price != nil {
		most.Cost = row.Price.Most(prompt, generated)
	}
	return most
}

func (c *completion) spend(used usage.Counts) {
	c.reserved.Settle(c.r.Context(), budget.Amounts{Cost: used.Cost, Tokens: billed(used)})
}
