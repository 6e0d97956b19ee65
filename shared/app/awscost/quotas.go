package awscost

import (
	"fmt"
	"math"
	"slices"
)

// Quota is a quota of an account of AWS that a day with many jobs outgrows.
type Quota struct {
	// Name is that of docs/scale.md.
	Name string
	// Service, Code and Title are those of Service Quotas. None was read from AWS: they are of
	// a list of 2024 (PyPI, reapit-cdk-service-quotas 0.1.2). So who reads a quota by its code
	// compares the title. They are empty for what nobody raises, and Mend says what to do.
	Service, Code, Title string
	// Default is what an account has in us-east-1 that has asked for nothing.
	Default float64
	// PerMillion is what the busiest second of a day with a million jobs uses, by the
	// simulation of docs/scale.md and its load: a tenth of that of ten million.
	PerMillion float64
	// Mend is what to do about a limit that nobody raises.
	Mend string
}

// The quotas, by their names.
const (
	FargateCPUs       = "Fargate: vCPUs on demand, 2 a worker"
	ServiceTasks      = "ECS: tasks of one service"
	TaskLaunches      = "ECS: tasks that a service starts in a minute"
	LambdaConcurrency = "Lambda: concurrent executions"
	LambdaGrowth      = "Lambda: more executions of one function within 10 seconds"
	APIRate           = "API Gateway: requests a second"
	ExecutionStarts   = "Step Functions: executions started a second"
	OpenExecutions    = "Step Functions: open executions"
	TaskReports       = "Step Functions: SendTaskSuccess a second"
	Transitions       = "Step Functions: state transitions a second"
	MessagesInFlight  = "SQS: messages in flight in a queue"
	TableReads        = "DynamoDB: read units of one table a second"
	TableWrites       = "DynamoDB: write units of one table a second"
	NewTableReads     = "DynamoDB: read units a second of a table that is new"
	NewTableWrites    = "DynamoDB: write units a second of a table that is new"
)

// MostDailyJobs is the largest day that quotas are known for.
const MostDailyJobs = 100_000_000

// The campaigns of docs/scale.md bring 1.8 times the load at once: a fleet, and the function
// with most executions, then grow by this part of their peak.
const growth = 0.8 / 1.8

// The parts of a job in Step Functions: its worker reports once, and it takes three states.
const (
	startsPerMillion      = 37
	transitionsOfJob      = 3
	readsPerMillion       = 770
	writesPerMillion      = 640
	workersPerMillion     = 290
	completionsPerMillion = 640
)

// Quotas returns all quotas, and the limits beside them that nobody raises.
func Quotas() []Quota {
	warm := "give the table a warm throughput, once and for a fee: aws dynamodb update-table --warm-throughput"
	return []Quota{
		{FargateCPUs, "fargate", "L-3032A538", "Fargate On-Demand vCPU resource count", 6, 580, ""},
		{ServiceTasks, "ecs", "L-92E49DE3", "Tasks per service", 5000, workersPerMillion, ""},
		{TaskLaunches, "ecs", "L-0314F8C9", "Rate of tasks launched by a service on AWS Fargate", 500,
			growth * workersPerMillion, ""},
		{LambdaConcurrency, "lambda", "L-B99A9384", "Concurrent executions", 1000, 715, ""},
		{LambdaGrowth, "", "", "", 1000, growth * completionsPerMillion,
			"expect 429 for some seconds where a load begins at once"},
		{APIRate, "apigateway", "L-8A5B8E43", "Throttle rate", 10_000, 230, ""},
		{ExecutionStarts, "states", "L-1B55A735", "StartExecution throttle token refill rate per second", 300,
			startsPerMillion, ""},
		{OpenExecutions, "states", "L-B8A5B662", "Open executions", 1_000_000, 400, ""},
		{TaskReports, "states", "L-EACE83FA", "SendTaskSuccess throttle token refill rate per second", 500,
			startsPerMillion, ""},
		{Transitions, "states", "L-AD9B4E93", "StateTransition throttle token refill rate per second", 5000,
			transitionsOfJob * startsPerMillion, ""},
		{MessagesInFlight, "sqs", "L-C491D5A4", "In-flight messages per standard queue", 120_000, 270, ""},
		{TableReads, "dynamodb", "L-CF0CBE56", "Table-level read throughput limit", 40_000, readsPerMillion, ""},
		{TableWrites, "dynamodb", "L-AB614373", "Table-level write throughput limit", 40_000, writesPerMillion, ""},
		{NewTableReads, "", "", "", 12_000, readsPerMillion, warm},
		{NewTableWrites, "", "", "", 4000, writesPerMillion, warm},
	}
}

// QuotaOf returns the quota with a name. It panics if there is none.
func QuotaOf(name string) Quota {
	all := Quotas()
	i := slices.IndexFunc(all, func(q Quota) bool { return q.Name == name })
	if i < 0 {
		panic("awscost: no quota has the name " + name)
	}
	return all[i]
}

// Needed returns what a day with so many jobs needs, to two digits and rounded up.
func (q Quota) Needed(jobs float64) float64 {
	n := q.PerMillion * jobs / 1e6
	if n < 1 {
		return 1
	}
	unit := math.Pow(10, math.Floor(math.Log10(n))-1)
	return math.Ceil(math.Ceil(n/unit-1e-9) * unit)
}

// Ask says which quota is to be raised to what, for so many jobs a day, or what to do where
// nobody raises it.
func (q Quota) Ask(jobs float64) string {
	if q.Mend != "" {
		return fmt.Sprintf("%s: %.0f, of %.0f: %s", q.Name, q.Needed(jobs), q.Default, q.Mend)
	}
	return fmt.Sprintf("%s: %.0f (an account begins with %.0f)", q.Name, q.Needed(jobs), q.Default)
}
