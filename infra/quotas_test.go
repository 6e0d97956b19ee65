package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/assertions"
	"github.com/aws/jsii-runtime-go"
)

// A deploy that says for how many jobs a day it is made names the quotas and options that are
// too low for them, and any names what its workers need.
func TestQuotasToRaise(t *testing.T) {
	for name, c := range map[string]struct {
		context  map[string]any
		warnings []string
		quotas   []string
	}{
		"nothing said":  {nil, nil, nil},
		"a few workers": {map[string]any{"workerMax": "4", "dailyJobs": "1000"}, nil, nil},
		"many workers": {map[string]any{"workerMax": "40"}, []string{"vCPUs on demand, 2 a worker: 80 (for workerMax"},
			[]string{"Fargate: vCPUs"}},
		"ten million jobs": {map[string]any{"dailyJobs": "10000000", "concurrency": "1000"},
			[]string{"workerMax is 4, and 10000000 jobs a day need 2900", "requestsPerSecond is 1000, and", "concurrency is 1000, and",
				"Lambda: concurrent executions: 7200 (an account begins with 1000)",
				"Nobody raises these limits", "of one function within 10 seconds: 2900, of 1000",
				"write units a second of a table that is new: 6400, of 4000"},
			[]string{"Fargate: vCPUs", "ECS: tasks that a service starts", "Lambda: concurrent", "Step Functions: executions started"}},
		"other workers": {map[string]any{"dailyJobs": "1000000", "worker": "none", "requestsPerSecond": "5000"}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := readOptions(c.context)
			if err != nil {
				t.Fatal(err)
			}
			app := awscdk.NewApp(&awscdk.AppProps{Outdir: jsii.String(t.TempDir()), AnalyticsReporting: jsii.Bool(false)})
			s := &stack{Stack: awscdk.NewStack(app, jsii.String("Stack"), nil), options: o}
			s.tellQuotas()
			said := ""
			for _, message := range *assertions.Annotations_FromStack(s.Stack).FindWarning(jsii.String("*"),
				assertions.Match_AnyValue()) {
				said += fmt.Sprintln(message.Entry.Data) //nolint:staticcheck // it has no other name in Go yet
			}
			for _, want := range c.warnings {
				if !strings.Contains(said, want) {
					t.Errorf("%q does not say %q", said, want)
				}
			}
			asks, _ := s.quotasToRaise()
			if len(asks) != len(c.quotas) {
				t.Errorf("%q are to be raised, want %q", asks, c.quotas)
			}
			for i, want := range c.quotas {
				if i < len(asks) && !strings.HasPrefix(asks[i], want) {
					t.Errorf("%q is to be raised, want %q", asks[i], want)
				}
			}
		})
	}
}
