package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"

	"cutroom/shared/app/awscost"
)

// workerCPUs is how many vCPUs a worker has.
const workerCPUs = 2

// tellQuotas names, in a warning of the synthesis and in an output of the stack, the quotas
// that have to be raised for the jobs a day that the deploy is made for, and the options of
// the deploy that are too low for them.
func (s *stack) tellQuotas() {
	for _, low := range s.lowOptions() {
		awscdk.Annotations_Of(s.Stack).AddWarningV2(jsii.String("cutroom:"+low.option), jsii.String(low.why))
	}
	asks, begins := s.quotasToRaise()
	if len(begins) > 0 {
		awscdk.Annotations_Of(s.Stack).AddWarningV2(jsii.String("cutroom:beginnings"), jsii.String(
			"Nobody raises these limits, which hold until AWS has followed the load (docs/scale.md):\n  "+
				strings.Join(begins, "\n  ")))
	}
	if len(asks) == 0 {
		return
	}
	s.output("QuotasToRaise", "Quotas of AWS that the deploy needs raised", jsii.String(strings.Join(asks, "; ")))
	awscdk.Annotations_Of(s.Stack).AddWarningV2(jsii.String("cutroom:quotas"), jsii.String(
		"Raise these quotas of the account in Service Quotas before the load comes (docs/scale.md):\n  "+strings.Join(asks, "\n  ")))
}

// previewWorkers reports whether the deploy's own workers take the jobs.
func (s *stack) previewWorkers() bool { return s.hasWorker() && !s.GPU.On }

// quotasToRaise returns the quotas with what they are to be, and the limits that nobody
// raises. Workers that were asked for count whether or not a size was.
func (s *stack) quotasToRaise() (asks, begins []string) {
	jobs := float64(s.DailyJobs)
	for _, quota := range awscost.Quotas() {
		ofWorkers := slices.Contains([]string{awscost.FargateCPUs, awscost.ServiceTasks, awscost.TaskLaunches}, quota.Name)
		cpus := float64(workerCPUs * s.WorkerMax)
		switch {
		case ofWorkers && !s.previewWorkers():
		case quota.Name == awscost.FargateCPUs && s.WorkerMax > defaultWorkerMax && cpus > max(quota.Default, quota.Needed(jobs)):
			asks = append(asks, fmt.Sprintf("%s: %.0f (for workerMax; an account begins with %.0f)", quota.Name, cpus, quota.Default))
		case quota.Needed(jobs) > quota.Default && quota.Mend != "":
			begins = append(begins, quota.Ask(jobs))
		case quota.Needed(jobs) > quota.Default:
			asks = append(asks, quota.Ask(jobs))
		}
	}
	return asks, begins
}

// lowOption is an option that is too low for the jobs a day.
type lowOption struct{ option, why string }

func (s *stack) lowOptions() (low []lowOption) {
	for _, o := range []struct {
		option, quota string
		is            int
		counts        bool
	}{
		{"workerMax", awscost.ServiceTasks, s.WorkerMax, s.previewWorkers()},
		{"requestsPerSecond", awscost.APIRate, s.RequestsPerSecond, true},
		{"concurrency", awscost.LambdaConcurrency, s.Concurrency, s.Concurrency > 0},
	} {
		if needed := awscost.QuotaOf(o.quota).Needed(float64(s.DailyJobs)); o.counts && float64(o.is) < needed && s.DailyJobs > 0 {
			low = append(low, lowOption{o.option,
				fmt.Sprintf("%s is %d, and %d jobs a day need %.0f in the busiest second.", o.option, o.is, s.DailyJobs, needed)})
		}
	}
	return low
}
