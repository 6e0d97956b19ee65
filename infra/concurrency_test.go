package main

import (
	"strings"
	"testing"
)

// Streaming functions cannot use up the concurrency of other functions, and 100 concurrent executions stay
// unreserved, as Lambda requires.
func TestConcurrencyIsSplit(t *testing.T) {
	for name, c := range map[string]struct {
		context map[string]any
		most    int
		want    map[string]any
	}{
		"by default nothing is reserved": {nil, 0, map[string]any{}},
		"the least": {map[string]any{"concurrency": "150"}, 150, map[string]any{
			"wake": 2.0, "scale": 1.0, "reaper": 5.0, "arrived": 5.0, "expiry": 2.0, "webhooks": 12.0, "steps": 6.0,
			"content": 4.0, "inference": 4.0,
		}},
		"an account of 1,000": {map[string]any{"concurrency": "1000"}, 1000, map[string]any{
			"wake": 2.0, "scale": 1.0, "reaper": 5.0, "arrived": 5.0, "expiry": 2.0, "webhooks": 12.0, "steps": 6.0,
			"content": 216.0, "inference": 216.0,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			context := map[string]any{"watch": "off", "workerImage": "worker"}
			for key, value := range c.context {
				context[key] = value
			}
			left := float64(c.most)
			for _, f := range synthesize(t, context).of(t, "AWS::Lambda::Function") {
				function := strings.TrimPrefix(f.Properties["FunctionName"].(string), "cutroom-dev-")
				got := f.Properties["ReservedConcurrentExecutions"]
				if got != c.want[function] {
					t.Errorf("%s has %v, want %v", function, got, c.want[function])
				}
				if n, ok := got.(float64); ok {
					left -= n
				}
			}
			if c.most > 0 && left < unreserved {
				t.Errorf("%v remain for the other functions", left)
			}
		})
	}
}
