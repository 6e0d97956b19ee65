package cloudwatch_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"cutroom/shared/adapter/cloudwatch"
	"cutroom/shared/domain/usage"
	"cutroom/shared/service/gateway"
)

func TestLinesFollowEmbeddedMetricFormat(t *testing.T) {
	var out bytes.Buffer
	m := cloudwatch.New(&out, func() time.Time { return time.UnixMilli(1_770_000_000_123) }, slog.New(slog.DiscardHandler))
	for _, test := range []struct {
		name string
		do   func()
		want string
	}{
		{"a stream", func() {
			m.Completed(gateway.Completion{
				Route: "chat", Model: "m", Stream: true, Status: 200, Duration: 1500 * time.Millisecond,
				FirstToken: 250 * time.Microsecond,
				Counts: usage.Counts{Requests: 1, PromptTokens: 10, CachedTokens: 4, CompletionTokens: 7, ReasoningTokens: 2,
					Estimated: 1},
			})
		}, `{"CachedTokens":4,"Code":"","CompletionTokens":7,"Duration":1500,"Estimated":1,"Failures":0,"FirstToken":0.25,` +
			`"Model":"m","PromptTokens":10,` +
			`"ReasoningTokens":2,"Requests":1,"Route":"chat","Status":200,"Stream":true,` +
			`"_aws":{"CloudWatchMetrics":[{"Dimensions":[["Route","Model"]],"Metrics":[` +
			`{"Name":"Requests","Unit":"Count"},{"Name":"Failures","Unit":"Count"},{"Name":"Duration","Unit":"Milliseconds"},` +
			`{"Name":"FirstToken","Unit":"Milliseconds"},` +
			`{"Name":"PromptTokens","Unit":"Count"},{"Name":"CachedTokens","Unit":"Count"},{"Name":"CompletionTokens",` +
			`"Unit":"Count"},{"Name":"ReasoningTokens","Unit":"Count"},` +
			`{"Name":"Estimated","Unit":"Count"}],"Namespace":"Cutroom"}],"Timestamp":1770000000123}}`},
		{"a rejection", func() {
			m.Completed(gateway.Completion{Route: "chat", Status: 401, Code: "invalid_api_key", Duration: time.Millisecond})
		}, `{"Code":"invalid_api_key","Duration":1,"Failures":0,"Model":"none","Requests":1,"Route":"chat","Status":401,` +
			`"Stream":false,"_aws":{"CloudWatchMetrics":[` +
			`{"Dimensions":[["Route","Model"]],"Metrics":[{"Name":"Requests","Unit":"Count"},{"Name":"Failures",` +
			`"Unit":"Count"},{"Name":"Duration","Unit":"Milliseconds"}],` +
			`"Namespace":"Cutroom"}],"Timestamp":1770000000123}}`},
		{"an upstream that failed", func() {
			m.Attempted(gateway.Attempt{Model: "m", Upstream: "u", Outcome: gateway.Failed})
		}, `{"Model":"m","Outcome":"failed","Upstream":"u","UpstreamFailures":1,` +
			`"_aws":{"CloudWatchMetrics":[{"Dimensions":[["Model","Upstream"]],"Metrics":[` +
			`{"Name":"UpstreamFailures","Unit":"Count"}],"Namespace":"Cutroom"}],"Timestamp":1770000000123}}`},
		{"an upstream that did not fail", func() {
			m.Attempted(gateway.Attempt{Model: "m", Upstream: "u", Outcome: gateway.Succeeded})
		}, ""},
	} {
		out.Reset()
		test.do()
		if got := out.String(); strings.TrimSuffix(got, "\n") != test.want {
			t.Errorf("%s:\ngot  %swant %s", test.name, got, test.want)
		}
	}
}

func TestOnlyServiceFailuresCount(t *testing.T) {
	for _, test := range []struct {
		status int
		code   string
		failed bool
	}{{200, "", false}, {200, "upstream_error", true}, {400, "", false}, {429, "rate_limit_exceeded", false},
		{499, "", false}, {502, "upstream_error", true}} {
		var out bytes.Buffer
		cloudwatch.New(&out, time.Now,
			slog.New(slog.DiscardHandler)).Completed(
			gateway.Completion{Route: "chat", Model: "m", Status: test.status, Code: test.code})
		if got := strings.Contains(out.String(), `"Failures":1`); got != test.failed {
			t.Errorf("status %d %q: failed is %v, want %v", test.status, test.code, got, test.failed)
		}
	}
}
