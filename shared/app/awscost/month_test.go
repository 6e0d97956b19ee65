package awscost_test

import (
	"math"
	"testing"

	"cutroom/shared/app/awscost"
)

// counts are round figures: a job takes a transition, and so on.
func counts() awscost.Counts {
	scenario := func(name string, item awscost.Item) awscost.Scenario {
		return awscost.Scenario{
			Name: name, Quantities: awscost.Quantities{item: 1},
			Functions: []awscost.Invocation{{Function: name, Memory: 512}}, Metrics: 8,
		}
	}
	return awscost.Counts{
		Scenarios: []awscost.Scenario{
			scenario("job", awscost.Transition), scenario("status", awscost.APIRequest),
			scenario("content", awscost.APIRequest), scenario("completion", awscost.WriteUnit),
			scenario("look", awscost.FunctionRequest),
		},
		WorkerHour: awscost.Quantities{awscost.ContainerCPU: 2},
		WorkMinute: awscost.Quantities{awscost.WriteUnit: 10},
		Idle:       awscost.Quantities{awscost.Secret: 1},
		Realtime:   awscost.Quantities{awscost.Balancer: 730},
		Looks:      1e6,
	}
}

// Sums that were computed by hand.
func TestMonth(t *testing.T) {
	for _, c := range []struct {
		what string
		use  awscost.Use
		// want are the parts of the sum.
		want       map[string]float64
		hours, sum float64
	}{
		{"nothing", awscost.Use{}, map[string]float64{"fixed": 0.60}, 0, 0.60},
		{"a million jobs", awscost.Use{Jobs: 1e6, Seconds: 60, Polls: 2, InputMB: 50, ResultMB: 23}, map[string]float64{
			"jobs": 25 + 6.25, "reads of their status": 7,
			// Three requests of 10 MB each, and 17 MB above 6.
			"downloads of results": 3*3.50 + 17e3*0.008, "transfer to the Internet": 23e3 * 0.09,
			"stored inputs and results": 73e3 * 48 / 730 * 0.023,
			"workers":                   1e6 / 60 * 2 * 0.03238, "fixed": 0.60,
		}, 1e6 / 60, 0},
		{"few jobs keep one worker awake", awscost.Use{Jobs: 6, Seconds: 1200}, map[string]float64{
			"workers": 3 * 2 * 0.03238,
		}, 3, 0},
		{"many short jobs keep it awake all the time", awscost.Use{Jobs: 1e5, Seconds: 1}, nil, 730, 0},
		{"workers with GPUs", awscost.Use{Jobs: 6, Seconds: 1200, WorkerHour: 2}, map[string]float64{"workers": 6}, 3, 0},
		{"completions", awscost.Use{Completions: 1e6, WaitSeconds: 3}, map[string]float64{
			"completions": 0.625, "functions that wait for models": 1.5 * 13.3334, "metrics of one model": 2.40,
		}, 0, 0.60 + 0.625 + 1.5*13.3334 + 2.40},
		{"realtime", awscost.Use{Realtime: true}, map[string]float64{"fixed": 0.60 + 730*0.0225}, 0, 0},
	} {
		t.Run(c.what, func(t *testing.T) {
			got := counts().Month(c.use)
			parts, sum := map[string]float64{}, 0.0
			for _, part := range got.Parts {
				parts[part.Name] = part.Dollars
				sum += part.Dollars
			}
			for name, want := range c.want {
				if math.Abs(parts[name]-want) > 1e-6 {
					t.Errorf("%s costs $%f, want $%f", name, parts[name], want)
				}
			}
			if math.Abs(got.Total-sum) > 1e-6 || c.sum > 0 && math.Abs(sum-c.sum) > 1e-6 {
				t.Errorf("the total is $%f, the parts are $%f, want $%f", got.Total, sum, c.sum)
			}
			if math.Abs(got.WorkerHours-c.hours) > 1e-6 {
				t.Errorf("workers run for %f hours, want %f", got.WorkerHours, c.hours)
			}
			if got.AboveFree > got.Total {
				t.Errorf("beyond the free tier are $%f of $%f", got.AboveFree, got.Total)
			}
		})
	}
}

// The kept counts have every scenario of a sum.
func TestKeptMonth(t *testing.T) {
	kept, err := awscost.Kept()
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range kept.Month(awscost.UsualUse(1e5, 1e6)).Parts {
		if !(part.Dollars > 0) {
			t.Errorf("%s costs $%f", part.Name, part.Dollars)
		}
	}
}

func TestSums(t *testing.T) {
	for dollars, want := range map[float64]string{
		0: "$0.00", 2.999: "$3.00", 1234567.891: "$1,234,567.89", 0.05: "$0.05",
	} {
		if got := awscost.Sums(dollars); got != want {
			t.Errorf("%f is %s, want %s", dollars, got, want)
		}
	}
}
