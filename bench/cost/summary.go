package cost

import (
	"errors"
	"fmt"
	"strings"

	"cutroom/shared/app/awscost"
)

// The part of docs/deploy.md that Summary writes is between these lines.
const (
	summaryBegins = "<!-- go run ./bench/costpage writes this. -->\n"
	summaryEnds   = "<!-- So far. -->\n"
)

// natMonth is what a NAT gateway with its address costs in a month of 730 hours, in
// dollars.
const natMonth = (0.045 + 0.005) * 730

// Summary returns what docs/deploy.md says of fixed costs.
func Summary(c awscost.Counts) string {
	return fmt.Sprintf(`Without calls the default stack costs %s a month at list price, of which %s is beyond the free tier: the metrics of %d alarms, a secret, Lambda's polling of queues, and a look each minute at whether workers are needed. `+"`-c watch=off`"+` omits the alarms, and `+"`-c watch=all`"+` adds a dashboard for $3 and second alarms.

`+"`-c gpu=true`"+` adds a NAT gateway with its address and a secret, %s a month, and the hours of the instances that run.

`+"`-c realtime=true`"+` adds a load balancer and a task that run all the time, %s a month; `+"`-c ingest=fargate`"+` adds nearly the same. `+"`-c webrtc=true`"+` adds what its streams take, %s for an hour of 1 Mbit/s.

[cost.md](cost.md) has what calls cost, and how all of it was counted.
`, awscost.Money(c.IdleMonth().Dollars()), awscost.Money(c.IdleMonth().DollarsAboveFree()), c.Alarms, awscost.Money(natMonth+awscost.Dollars(awscost.Secret, 1)), awscost.Money(c.Realtime.Dollars()), awscost.Money(awscost.Dollars(awscost.TransferOut, liveBitrate/8*3600/1e9)))
}

// WithSummary returns a page with its part on fixed costs written anew.
//
// Errors: the page has no such part.
func WithSummary(page string, c awscost.Counts) (string, error) {
	before, rest, begins := strings.Cut(page, summaryBegins)
	_, after, ends := strings.Cut(rest, summaryEnds)
	if !begins || !ends {
		return "", errors.New("the page has no part for the costs")
	}
	return before + summaryBegins + Summary(c) + summaryEnds + after, nil
}

// WithoutSummary returns a page without that part.
func WithoutSummary(page string) string {
	before, rest, begins := strings.Cut(page, summaryBegins)
	_, after, ends := strings.Cut(rest, summaryEnds)
	if !begins || !ends {
		return page
	}
	return before + after
}
