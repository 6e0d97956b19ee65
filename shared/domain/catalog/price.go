package catalog

import (
	"cmp"
	"fmt"
	"math/bits"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

type PriceUnit string

const (
	PerSecond PriceUnit = "second"
	PerEdit   PriceUnit = "edit"
)

type MediaPrice struct {
	Per PriceUnit `json:"per"`
	// Millionths is the price per second of the result, or per edit, in millionths of the currency.
	Millionths int64  `json:"millionths"`
	Currency   string `json:"currency"` // an ISO 4217 code
	// Sizes maps a resolution, such as "480p", to its price if that is not Millionths.
	Sizes map[string]int64 `json:"sizes,omitempty"`
}

// At returns the price for a resolution. For a nil price it returns nil.
func (p *MediaPrice) At(resolution string) *MediaPrice {
	if p == nil {
		return nil
	}
	price := *p
	if own, ok := p.Sizes[resolution]; ok {
		price.Millionths = own
	}
	price.Sizes = nil
	return &price
}

func (p MediaPrice) Amount() float64 { return amount(p.Millionths) }

func (p MediaPrice) AmountsBySize() map[string]float64 {
	if len(p.Sizes) == 0 {
		return nil
	}
	amounts := map[string]float64{}
	for resolution, millionths := range p.Sizes {
		amounts[resolution] = amount(millionths)
	}
	return amounts
}

func amount(millionths int64) float64 { return float64(millionths) / 1e6 }

// Of returns the cost of a result of the given length. The cost is in billionths of the currency, rounded up and
// capped at maxCallCost. known is false if the price is per second and the length is unknown.
func (p MediaPrice) Of(length time.Duration) (billionths int64, known bool) {
	if p.Per == PerEdit {
		return min(p.Millionths*1000, maxCallCost), true
	}
	if length <= 0 {
		return 0, false
	}
	// Millionths times nanoseconds gives millionths of billionths.
	high, low := bits.Mul64(uint64(p.Millionths), uint64(length))
	low, carry := bits.Add64(low, 999_999, 0)
	if high += carry; high >= 1_000_000 {
		return maxCallCost, true
	}
	rounded, _ := bits.Div64(high, low, 1_000_000)
	return int64(min(rounded, maxCallCost)), true
}

type TokenPrice struct {
	// Prices are per million tokens, in millionths of the currency. For audio, Input is per million seconds or characters.
	// Cached applies to prompt tokens that come from the upstream's cache. Reasoning applies to generated reasoning
	// tokens.
	Input, Output, Cached, Reasoning int64
	// Call is an additional price per call, in millionths of the currency.
	Call int64
	// Batch is the price of batch calls as a fraction of the normal price, in millionths.
	Batch int64
}

// Tokens holds the token counts of one call. Prompt includes Cached, and Completion includes Reasoning.
type Tokens struct{ Prompt, Cached, Completion, Reasoning int64 }

// maxCallCost caps the cost of one call at a million units of the currency.
const maxCallCost = 1e15

// Of returns the cost of a call in billionths of the currency, rounded up and capped at maxCallCost.
func (p TokenPrice) Of(used Tokens) (billionths int64) {
	cached, reasoning := min(used.Cached, used.Prompt), min(used.Reasoning, used.Completion)
	var high, low uint64 // a 128-bit number of trillionths
	for _, part := range [...][2]int64{
		{used.Prompt - cached, p.Input}, {cached, p.Cached}, {used.Completion - reasoning, p.Output},
		{reasoning, p.Reasoning}, {p.Call, 1_000_000},
	} {
		partHigh, partLow := bits.Mul64(uint64(part[0]), uint64(part[1]))
		var carry uint64
		low, carry = bits.Add64(low, partLow, 0)
		high += partHigh + carry
	}
	if high > 0 || low > 1000*maxCallCost {
		return maxCallCost
	}
	return int64((low + 999) / 1000)
}

func (p TokenPrice) OfBatch(used Tokens) (billionths int64) {
	high, low := bits.Mul64(uint64(p.Of(used)), uint64(p.Batch))
	low, carry := bits.Add64(low, wholePrice-1, 0)
	quotient, _ := bits.Div64(high+carry, low, wholePrice)
	return int64(quotient)
}

// wholePrice is the value of Batch that means no discount.
const wholePrice = 1_000_000

// Most returns a call's highest possible cost, considering that any of the tokens may be cached or reasoning tokens.
func (p TokenPrice) Most(prompt, completion int64) (billionths int64) {
	p.Input, p.Output = max(p.Input, p.Cached), max(p.Output, p.Reasoning)
	return p.Of(Tokens{Prompt: prompt, Completion: completion})
}

// These expressions are compiled on first use, because few catalogs have prices.
var (
	amountForm   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9]{1,6}(\.[0-9]{1,6})?$`) })
	currencyForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Z]{3}$`) })
)

type priceEntry struct {
	PerSecond string `yaml:"per_second"`
	PerEdit   string `yaml:"per_edit"`
	// Sizes does not include the form's default size.
	Sizes map[string]string
}

func (e *priceEntry) price(m *Model, currency string) (*MediaPrice, error) {
	switch {
	case e == nil:
		return nil, nil
	case (e.PerSecond == "") == (e.PerEdit == ""):
		return nil, fmt.Errorf("a price must have either per_second or per_edit")
	case e.PerSecond != "" && m.Kind == Image:
		return nil, fmt.Errorf("the price of an image must be per_edit, because it has no length")
	case currency == "":
		return nil, fmt.Errorf("a price requires the currency of the catalog")
	}
	price, amount := &MediaPrice{Per: PerSecond, Currency: currency}, e.PerSecond
	if e.PerEdit != "" {
		price.Per, amount = PerEdit, e.PerEdit
	}
	var err error
	if price.Millionths, err = millionths(amount); err != nil {
		return nil, err
	}
	for resolution, text := range e.Sizes {
		if _, ok := m.Sizes[resolution]; !ok {
			return nil, fmt.Errorf("the model has a price for the size %.32q but no such size", resolution)
		}
		if price.Sizes == nil {
			price.Sizes = map[string]int64{}
		}
		if price.Sizes[resolution], err = millionths(text); err != nil {
			return nil, err
		}
	}
	return price, nil
}

func (e modelEntry) sessionPrice(currency string) (int64, error) {
	switch {
	case e.SessionPrice == "":
		return 0, nil
	case !e.Realtime:
		return 0, fmt.Errorf("only models with realtime sessions may have a session price")
	case currency == "":
		return 0, fmt.Errorf("a price requires the currency of the catalog")
	}
	return millionths(e.SessionPrice)
}

type tokenPriceEntry struct {
	Input, Output, Cached, Reasoning, Call, Batch string
}

func (e *tokenPriceEntry) price() (*TokenPrice, error) {
	if e == nil {
		return nil, nil
	}
	var price TokenPrice
	for _, part := range []struct {
		text, otherwise string
		to              *int64
	}{
		{e.Input, "0", &price.Input}, {e.Output, "0", &price.Output},
		{e.Cached, e.Input, &price.Cached}, {e.Reasoning, e.Output, &price.Reasoning}, {e.Call, "0", &price.Call},
		{e.Batch, "1", &price.Batch},
	} {
		var err error
		if *part.to, err = millionths(cmp.Or(part.text, part.otherwise, "0")); err != nil {
			return nil, err
		}
	}
	if price.Batch > wholePrice {
		return nil, fmt.Errorf("the batch price %s must be a factor from 0 to 1", e.Batch)
	}
	return &price, nil
}

func millionths(amount string) (int64, error) {
	if !amountForm().MatchString(amount) {
		return 0, fmt.Errorf("the price %.32q must be a number such as 0.05", amount)
	}
	whole, fraction, _ := strings.Cut(amount, ".")
	return strconv.ParseInt(whole+(fraction + "000000")[:6], 10, 64)
}
