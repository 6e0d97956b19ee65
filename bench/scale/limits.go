package main

import (
	"cmp"
	"slices"
	"time"

	"cutroom/bench/scale/sim"
	"cutroom/shared/testkit/fakeaws"
)

// limit is a quota of AWS, or a bound of the service, and what a simulation has used of it
// at the most.
type limit struct {
	name string
	// quota is what an account has that has asked for nothing (us-east-1). raise says who
	// raises it; it is empty for what nobody can raise.
	quota float64
	raise string
	used  func(*sim.Result) float64
}

// The parts of a worker's container, and what else the limits are in.
const (
	workerCPUs = 2
)

// limits are those that a simulation is held against.
var limits = []limit{
	{"DynamoDB: units of one partition a second", 1, "", func(r *sim.Result) float64 {
		if len(r.Hottest) == 0 {
			return 0
		}
		return r.Hottest[0].Share()
	}},
	{"DynamoDB: transactions on one item (at 10 ms each)", float64(time.Second / fakeaws.TransactionTime), "", func(r *sim.Result) float64 {
		most := 0
		for _, h := range r.Hottest {
			most = max(most, h.Transactions)
		}
		return float64(most)
	}},
	{"DynamoDB: write units of one table a second", 40_000, "Service Quotas", func(r *sim.Result) float64 {
		return tables(r, func(t fakeaws.Total) float64 { return t.MostWrites })
	}},
	{"DynamoDB: read units of one table a second", 40_000, "Service Quotas", func(r *sim.Result) float64 {
		return tables(r, func(t fakeaws.Total) float64 { return t.MostReads })
	}},
	{"Lambda: concurrent executions", 1000, "Service Quotas", func(r *sim.Result) float64 {
		return float64(r.Peaks.Lambdas)
	}},
	{"API Gateway: requests a second", 10_000, "Service Quotas", func(r *sim.Result) float64 {
		return float64(r.Peaks.Requests)
	}},
	{"Step Functions: executions started a second", 300, "Service Quotas", func(r *sim.Result) float64 {
		return float64(r.Peaks.Starts)
	}},
	{"Step Functions: open executions", 1_000_000, "Service Quotas", func(r *sim.Result) float64 {
		return float64(r.Peaks.OpenExecutions)
	}},
	{"SQS: messages in flight in a queue", 120_000, "AWS Support", func(r *sim.Result) float64 {
		return float64(r.Peaks.InFlight)
	}},
	{"ECS: DescribeServices a second", 20, "AWS Support", func(r *sim.Result) float64 {
		return float64(r.Peaks.Describes)
	}},
	{"ECS: tasks of one service", 5000, "Service Quotas", func(r *sim.Result) float64 {
		return float64(r.Peaks.Tasks)
	}},
	{"Fargate: vCPUs on demand, 2 a worker", 6, "Service Quotas", func(r *sim.Result) float64 {
		return workerCPUs * float64(r.Peaks.Tasks)
	}},
	{"S3: PUT requests of one prefix a second", 3500, "", func(r *sim.Result) float64 {
		return float64(r.Peaks.Puts)
	}},
	{"Cutroom: workers (option workerMax)", sim.MostWorkers, "", func(r *sim.Result) float64 {
		return float64(r.Peaks.Tasks)
	}},
	{"Cutroom: open jobs of one account", sim.MostOpen, "", func(r *sim.Result) float64 {
		return float64(r.Peaks.OpenJobs)
	}},
}

func tables(r *sim.Result, of func(fakeaws.Total) float64) (most float64) {
	for _, t := range r.Tables {
		most = max(most, of(t))
	}
	return most
}

// reached is a limit with the part of it that was used.
type reached struct {
	limit
	value float64
}

func (r reached) share() float64 { return r.value / r.quota }

// first returns the fullest of the limits that somebody raises, or of those that nobody does.
func first(all []reached, raised bool) reached {
	i := slices.IndexFunc(all, func(r reached) bool { return (r.raise != "") == raised })
	return all[i]
}

// reachedBy returns the limits, the fullest first.
func reachedBy(r *sim.Result) []reached {
	var all []reached
	for _, l := range limits {
		all = append(all, reached{l, l.used(r)})
	}
	slices.SortStableFunc(all, func(a, b reached) int { return cmp.Compare(b.share(), a.share()) })
	return all
}
