package api

import (
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/job"
)

// priceBody is what a model costs (docs/contract/media.md#prices).
type priceBody struct {
	Amount   float64           `json:"amount"`
	Per      catalog.PriceUnit `json:"per"`
	Currency string            `json:"currency"`
}

// newPriceBody returns nil for a model without a price.
func newPriceBody(p *catalog.MediaPrice) *priceBody {
	if p == nil {
		return nil
	}
	return &priceBody{p.Amount(), p.Per, p.Currency}
}

// costBody is an estimate of what an edit costs.
type costBody struct {
	Amount   float64 `json:"amount"`
	Currency string  `json:"currency"`
}

// newCostBody returns nil if the cost is not known.
func newCostBody(j job.Job) *costBody {
	millionths, currency, known := j.Cost()
	if !known {
		return nil
	}
	return &costBody{float64(millionths) / 1e6, currency}
}

// estimated returns what an edit by a model costs, nil if that is not known. The length
// is that of the input, 0 if it is not known.
func estimated(m *catalog.Model, length time.Duration) *costBody {
	return newCostBody(job.Job{Request: job.Request{Price: m.Price, Length: lengthOf(m, length)}})
}

// lengthOf returns how long a model's result is, by the length of its input.
func lengthOf(m *catalog.Model, input time.Duration) time.Duration {
	if m.Kind == catalog.TextToVideo {
		return m.Duration
	}
	return input
}
