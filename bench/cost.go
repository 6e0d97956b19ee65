package main

import (
	"context"
	"fmt"

	"cutroom/bench/cost"
	"cutroom/shared/app/awscost"
)

// cost counts the service's calls to AWS and prices them. The floor is the price of
// the executions' transitions alone.
func (b *bench) cost(ctx context.Context) error {
	counts, err := cost.Measure(ctx, b.folder)
	if err != nil {
		return err
	}
	per1000 := func(q awscost.Quantities) float64 { return 1000 * q.Dollars() }
	for _, s := range counts.Scenarios {
		r := row{what: "cost of 1,000 " + s.Title, measured: fmt.Sprintf("$%.4f", per1000(s.Quantities)), floor: "-",
			ratio: "-", bar: "-", verdict: noBar}
		if s.Name == "job" {
			floor := per1000(awscost.Quantities{awscost.Transition: s.Quantities[awscost.Transition]})
			r.floor, r.ratio = fmt.Sprintf("$%.4f transitions", floor), fmt.Sprintf("%.2f x", per1000(s.Quantities)/floor)
			r.bar, r.verdict = fmt.Sprintf("$%.2f", awscost.JobBar), verdictOf(per1000(s.Quantities) <= awscost.JobBar)
		}
		b.table.add(r)
	}
	b.table.add(row{
		what: "cost of an idle month, default stack", measured: fmt.Sprintf("$%.2f list, $%.2f beyond the free tier",
			counts.IdleMonth().Dollars(), counts.IdleMonth().DollarsAboveFree()),
		floor: "-", ratio: "-", bar: fmt.Sprintf("$%.2f", awscost.IdleBar),
		verdict: verdictOf(counts.IdleMonth().Dollars() <= awscost.IdleBar),
	})
	return nil
}
