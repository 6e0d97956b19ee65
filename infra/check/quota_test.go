package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"cutroom/shared/testkit/awstest"
)

// quotaService simulates Service Quotas and Lambda as AWS documents them.
type quotaService struct {
	// applied maps quota codes to the account's quotas. byDefault maps them to AWS's defaults.
	concurrency        int
	applied, byDefault map[string]float64
	// titles maps quota codes to titles. fixed lists the codes that Service Quotas cannot raise.
	titles map[string]string
	fixed  map[string]bool
	denied bool
}

func (a quotaService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	reject := func(kind string) {
		w.Header().Set("X-Amzn-ErrorType", kind)
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprintf(w, `{"__type":%q,"message":"no"}`, kind)
	}
	if a.denied {
		reject("AccessDeniedException")
		return
	}
	if strings.HasSuffix(r.URL.Path, "/account-settings") {
		_, _ = fmt.Fprintf(w, `{"AccountLimit":{"ConcurrentExecutions":%d}}`, a.concurrency)
		return
	}
	var asked struct{ ServiceCode, QuotaCode string }
	if err := json.Unmarshal(body, &asked); err != nil {
		reject("SerializationException")
		return
	}
	values := a.applied
	if strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".GetAWSDefaultServiceQuota") {
		values = a.byDefault
	}
	quota := asked.ServiceCode + " " + asked.QuotaCode
	value, ok := values[quota]
	if !ok {
		reject("NoSuchResourceException")
		return
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	_, _ = fmt.Fprintf(w, `{"Quota":{"ServiceCode":%q,"QuotaCode":%q,"QuotaName":%q,"Value":%g,"Adjustable":%t}}`,
		asked.ServiceCode, asked.QuotaCode, a.titles[quota], value, !a.fixed[quota])
}

func TestLowQuotasAreReported(t *testing.T) {
	const rate, tasks = "apigateway L-8A5B8E43", "fargate L-3032A538"
	const onDemand, spot, p = "ec2 L-DB2E81BA", "ec2 L-3819A6DF", "ec2 L-417A185B"
	const p5Spot, p4Spot = "ec2 L-C4BD4855", "ec2 L-7212CCBC"
	byDefault := map[string]float64{rate: 10_000, tasks: 6, onDemand: 0, spot: 0, p: 0, p5Spot: 0, p4Spot: 0}
	titles := map[string]string{
		rate: "Throttle rate", tasks: "Fargate On-Demand vCPU resource count",
		onDemand: "Running On-Demand G and VT instances", spot: "All G and VT Spot Instance Requests",
		p: "Running On-Demand P instances", p5Spot: "All P5 Spot Instance Requests",
		p4Spot: "All P4, P3 and P2 Spot Instance Requests",
	}
	for _, c := range []struct {
		name    string
		account quotaService
		options map[string]string
		// want maps title prefixes to expected states.
		want map[string]string
		says string
	}{
		{"an old account", quotaService{concurrency: 1000, applied: map[string]float64{tasks: 100}}, nil,
			map[string]string{"Concurrent": "ok", "Throttle": "ok", "Fargate": "ok"}, ""},
		{"a new account", quotaService{concurrency: 10}, nil,
			map[string]string{"Concurrent": "warn", "Throttle": "ok", "Fargate": "warn"},
			"--service-code fargate --quota-code L-3032A538 --desired-value 8"},
		{"fewer workers", quotaService{concurrency: 1000}, map[string]string{"workerMax": "2"},
			map[string]string{"Concurrent": "ok", "Throttle": "ok", "Fargate": "ok"}, ""},
		{"what Service Quotas does not raise", quotaService{concurrency: 1000, fixed: map[string]bool{tasks: true}}, nil,
			map[string]string{"Concurrent": "ok", "Throttle": "ok", "Fargate": "warn"}, "Ask AWS Support for 8"},
		{"a code of another quota", quotaService{concurrency: 1000, titles: map[string]string{onDemand: "Dedicated hosts", rate: titles[rate], tasks: titles[tasks]}},
			map[string]string{"gpu": "true"},
			map[string]string{"Concurrent": "ok", "Throttle": "ok", "Running On-Demand G and VT instances": "warn"},
			"check the console of Service Quotas: 16 is required"},
		{"no workers", quotaService{concurrency: 1000}, map[string]string{"worker": "none"},
			map[string]string{"Concurrent": "ok", "Throttle": "ok"}, ""},
		{"GPUs that cannot start", quotaService{concurrency: 1000}, map[string]string{"gpu": "true"},
			map[string]string{"Concurrent": "ok", "Throttle": "ok", "Running On-Demand G and VT instances": "fail"},
			"--service-code ec2 --quota-code L-DB2E81BA --desired-value 16"},
		{"GPUs beside the preview workers", quotaService{concurrency: 1000, applied: map[string]float64{tasks: 10}},
			map[string]string{"gpu": "prepare"},
			map[string]string{"Concurrent": "ok", "Throttle": "ok", "Fargate": "ok", "Running On-Demand G and VT instances": "fail"},
			"--service-code ec2 --quota-code L-DB2E81BA --desired-value 16"},
		{"too few GPUs", quotaService{concurrency: 1000, applied: map[string]float64{onDemand: 8}}, map[string]string{"gpu": "true"},
			map[string]string{"Concurrent": "ok", "Throttle": "ok", "Running On-Demand G and VT instances": "warn"}, ""},
		{"GPUs on the spot market", quotaService{concurrency: 1000, applied: map[string]float64{spot: 64}},
			map[string]string{"gpu": "true", "gpu.spot": "true", "gpu.instances": "g5.xlarge,g5.2xlarge"},
			map[string]string{"Concurrent": "ok", "Throttle": "ok", "All G and VT Spot Instance Requests": "ok"}, ""},
		{"larger GPUs", quotaService{concurrency: 1000}, map[string]string{"gpu": "true", "gpu.max": "1", "gpu.instances": "p5.48xlarge"},
			map[string]string{"Concurrent": "ok", "Throttle": "ok", "Running On-Demand P instances": "fail"},
			"--quota-code L-417A185B --desired-value 192"},
		{"larger GPUs on the spot market", quotaService{concurrency: 1000, applied: map[string]float64{p4Spot: 200}},
			map[string]string{"gpu": "true", "gpu.max": "1", "gpu.spot": "true", "gpu.instances": "p5.4xlarge"},
			map[string]string{"Concurrent": "ok", "Throttle": "ok", "All P5 Spot Instance Requests": "fail"},
			"--quota-code L-C4BD4855 --desired-value 16"},
		{"older GPUs on the spot market", quotaService{concurrency: 1000, applied: map[string]float64{p4Spot: 96}},
			map[string]string{"gpu": "true", "gpu.max": "1", "gpu.spot": "true", "gpu.instances": "p4d.24xlarge"},
			map[string]string{"Concurrent": "ok", "Throttle": "ok", "All P4, P3 and P2 Spot": "ok"}, ""},
		{"a deployer who may not look", quotaService{denied: true}, map[string]string{"gpu": "true"},
			map[string]string{"Concurrent": "warn", "Throttle": "warn", "Running On-Demand G and VT instances": "warn"},
			"servicequotas:GetServiceQuota"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.account.byDefault = byDefault
			if c.account.titles == nil {
				c.account.titles = titles
			}
			server := httptest.NewServer(c.account)
			t.Cleanup(server.Close)
			found := readQuotas(t.Context(), awstest.ConfigFor(server.URL), c.options)
			if len(found) != len(c.want) {
				t.Errorf("%d quotas, want %d: %+v", len(found), len(c.want), found)
			}
			said := ""
			for _, quota := range found {
				said += quota.mend
				for name, state := range c.want {
					if strings.HasPrefix(quota.title, name) && quota.state != state {
						t.Errorf("%s: %s %s, want %s", quota.title, quota.state, quota.detail, state)
					}
				}
				if quota.state != "ok" && quota.mend == "" {
					t.Errorf("%s does not explain how to raise it", quota.title)
				}
			}
			if !strings.Contains(said, c.says) {
				t.Errorf("%q does not contain %q", said, c.says)
			}
		})
	}
}
