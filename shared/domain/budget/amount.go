package budget

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"cutroom/shared/domain/usage"
)

// The expression is compiled on first use, because few functions need it.
var amountForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9]{1,10}(\.[0-9]{1,9})?$`) })

// ParseAmount parses a cost in the currency, such as 12.5, or an integer for other units.
func (u Unit) ParseAmount(text string) (int64, error) {
	if u != Cost {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 || n > MaxLimit {
			return 0, fmt.Errorf("%.32q is not a number of %s from 0 to %d", text, u, int64(MaxLimit))
		}
		return n, nil
	}
	whole, fraction, _ := strings.Cut(text, ".")
	n, err := strconv.ParseInt(whole+(fraction + "000000000")[:9], 10, 64)
	if !amountForm().MatchString(text) || err != nil || n > MaxLimit {
		return 0, fmt.Errorf("%.32q is not an amount from 0 to a billion, such as 12.50", text)
	}
	return n, nil
}

// FormatAmount is the inverse of ParseAmount.
func (u Unit) FormatAmount(n int64) string {
	if u == Cost {
		return usage.Amount(n)
	}
	return strconv.FormatInt(n, 10)
}
