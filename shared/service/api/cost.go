package api

import (
	"cmp"
	"encoding/json"
	"math"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/job"
	"cutroom/shared/domain/usage"
)

// See docs/contract/jobs.md#prices.
type priceBody struct {
	Amount   float64            `json:"amount"`
	Per      catalog.PriceUnit  `json:"per"`
	Currency string             `json:"currency"`
	Sizes    map[string]float64 `json:"sizes,omitempty"`
}

func newPriceBody(p *catalog.MediaPrice) *priceBody {
	if p == nil {
		return nil
	}
	return &priceBody{p.Amount(), p.Per, p.Currency, p.AmountsBySize()}
}

type costBody struct {
	Amount   float64 `json:"amount"`
	Currency string  `json:"currency"`
}

// newCostBody returns the estimated cost, rounded to a millionth, or nil if unknown.
func newCostBody(j job.Job) *costBody {
	billionths, currency, known := j.Cost()
	if !known {
		return nil
	}
	return &costBody{math.Round(float64(billionths)/1e3) / 1e6, currency}
}

type billBody struct {
	Amount   json.Number `json:"amount"`
	Currency string      `json:"currency"`
}

// newBillBody returns nil if the job has not completed or its model has no price.
func newBillBody(j job.Job) *billBody {
	billionths, currency, known := j.Cost()
	if j.Status != job.Completed || !known {
		return nil
	}
	return &billBody{json.Number(usage.Amount(billionths)), currency}
}

// estimated returns nil if the cost is unknown. length is the input's length, or 0 if unknown.
func estimated(m *catalog.Model, resolution string, length time.Duration) *costBody {
	return newCostBody(job.Job{Request: job.Request{Price: m.Price.At(resolution), Length: lengthOf(m, length)}})
}

func lengthOf(m *catalog.Model, input time.Duration) time.Duration { return cmp.Or(m.Duration, input) }
