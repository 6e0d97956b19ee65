package catalog

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// PriceUnit is what a price is for.
type PriceUnit string

// The units of prices.
const (
	PerSecond PriceUnit = "second"
	PerEdit   PriceUnit = "edit"
)

// MediaPrice is what a model costs, for estimates. It is an operator's word: nothing is
// charged by it.
type MediaPrice struct {
	Per PriceUnit `json:"per"`
	// Millionths is the price of one second of the result, or of one edit, in
	// millionths of the currency.
	Millionths int64 `json:"millionths"`
	// Currency is a code of ISO 4217, such as "EUR".
	Currency string `json:"currency"`
}

// Amount returns the price in the unit of the currency. The float64 is written with as
// many decimals as the price has.
func (p MediaPrice) Amount() float64 { return float64(p.Millionths) / 1e6 }

// Of returns what a result of the length costs, in millionths of the currency. It
// reports whether that is known: a price per second needs a length.
func (p MediaPrice) Of(length time.Duration) (millionths int64, known bool) {
	if p.Per == PerEdit {
		return p.Millionths, true
	}
	if length <= 0 {
		return 0, false
	}
	return int64(math.Round(float64(p.Millionths) * length.Seconds())), true
}

var (
	// amountForm matches a price in the file, such as 0.05.
	amountForm   = regexp.MustCompile(`^[0-9]{1,6}(\.[0-9]{1,6})?$`)
	currencyForm = regexp.MustCompile(`^[A-Z]{3}$`)
)

// priceEntry is a price in the file.
type priceEntry struct {
	PerSecond string `yaml:"per_second"`
	PerEdit   string `yaml:"per_edit"`
}

// price reads a model's price, nil if it has none.
func (e *priceEntry) price(kind Kind, currency string) (*MediaPrice, error) {
	switch {
	case e == nil:
		return nil, nil
	case (e.PerSecond == "") == (e.PerEdit == ""):
		return nil, fmt.Errorf("a price is either per_second or per_edit")
	case e.PerSecond != "" && kind == Image:
		return nil, fmt.Errorf("an image has no length: its price is per_edit")
	case currency == "":
		return nil, fmt.Errorf("a price needs the currency of the catalog")
	}
	price, amount := &MediaPrice{Per: PerSecond, Currency: currency}, e.PerSecond
	if e.PerEdit != "" {
		price.Per, amount = PerEdit, e.PerEdit
	}
	if !amountForm.MatchString(amount) {
		return nil, fmt.Errorf("the price %.32q is not a number such as 0.05", amount)
	}
	whole, fraction, _ := strings.Cut(amount, ".")
	var err error
	price.Millionths, err = strconv.ParseInt(whole+(fraction + "000000")[:6], 10, 64)
	return price, err
}
