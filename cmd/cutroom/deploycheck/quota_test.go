package deploycheck_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"cutroom/cmd/cutroom/deploycheck"
	"cutroom/shared/testkit/awstest"
)

// account stands in for Service Quotas and Lambda, as AWS documents their answers.
type account struct {
	// concurrency is Lambda's; applied and byDefault are quotas by their codes, of the
	// account and of AWS.
	concurrency        int
	applied, byDefault map[string]float64
	// titles are those of quotas by their codes, empty where it says none, and fixed are
	// those that Service Quotas does not raise.
	titles map[string]string
	fixed  map[string]bool
	denied bool
}

func (a account) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	refuse := func(kind string) {
		w.Header().Set("X-Amzn-ErrorType", kind)
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprintf(w, `{"__type":%q,"message":"no"}`, kind)
	}
	if a.denied {
		refuse("AccessDeniedException")
		return
	}
	if strings.HasSuffix(r.URL.Path, "/account-settings") {
		_, _ = fmt.Fprintf(w, `{"AccountLimit":{"ConcurrentExecutions":%d}}`, a.concurrency)
		return
	}
	var asked struct{ ServiceCode, QuotaCode string }
	if err := json.Unmarshal(body, &asked); err != nil {
		refuse("SerializationException")
		return
	}
	values := a.applied
	if strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".GetAWSDefaultServiceQuota") {
		values = a.byDefault
	}
	quota := asked.ServiceCode + " " + asked.QuotaCode
	value, ok := values[quota]
	if !ok {
		refuse("NoSuchResourceException")
		return
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	_, _ = fmt.Fprintf(w, `{"Quota":{"ServiceCode":%q,"QuotaCode":%q,"QuotaName":%q,"Value":%g,"Adjustable":%t}}`,
		asked.ServiceCode, asked.QuotaCode, a.titles[quota], value, !a.fixed[quota])
}

// What an account has decides what is said before a deploy: what a deploy would hang
// without fails, what is low or cannot be read is a warning.
func TestQuotas(t *testing.T) {
	const rate, tasks = "apigateway L-8A5B8E43", "fargate L-3032A538"
	const onDemand, spot, p = "ec2 L-DB2E81BA", "ec2 L-3819A6DF", "ec2 L-417A185B"
	const p5Spot, p4Spot = "ec2 L-C4BD4855", "ec2 L-7212CCBC"
	byDefault := map[string]float64{rate: 10_000, tasks: 6, onDemand: 0, spot: 0, p: 0, p5Spot: 0, p4Spot: 0}
	titles := map[string]string{
		onDemand: "Running On-Demand G and VT instances", tasks: "Fargate On-Demand vCPU resource count",
	}
	for _, c := range []struct {
		name    string
		account account
		options map[string]string
		// want are the states by the code in the command that raises the quota, or
		// beginnings of names where there is none.
		want map[string]string
		says string
	}{
		{"an old account", account{concurrency: 1000, applied: map[string]float64{tasks: 100}}, nil,
			map[string]string{"Lambda": "ok", "API Gateway": "ok", "Fargate": "ok"}, ""},
		{"a new account", account{concurrency: 10}, nil,
			map[string]string{"Lambda": "warn", "API Gateway": "ok", "Fargate": "warn"},
			"--service-code fargate --quota-code L-3032A538 --desired-value 10"},
		{"fewer workers", account{concurrency: 1000}, map[string]string{"workerMax": "2"},
			map[string]string{"Lambda": "ok", "API Gateway": "ok", "Fargate": "ok"}, ""},
		{"as many as without a try", account{concurrency: 1000}, map[string]string{"workerMax": "3", "smoke": "off"},
			map[string]string{"Lambda": "ok", "API Gateway": "ok", "Fargate": "ok"}, ""},
		{"what Service Quotas does not raise", account{concurrency: 1000, fixed: map[string]bool{tasks: true}}, nil,
			map[string]string{"Lambda": "ok", "API Gateway": "ok", "Fargate": "warn"}, "Ask AWS Support for 10"},
		{"a code of another quota", account{concurrency: 1000, titles: map[string]string{onDemand: "Dedicated hosts"}},
			map[string]string{"gpu": "true"},
			map[string]string{"Lambda": "ok", "API Gateway": "ok", "Fargate": "ok", "EC2: Running On-Demand G and VT instances": "warn"},
			"servicequotas/home/services/ec2/quotas; 16 is needed"},
		{"no workers", account{concurrency: 1000}, map[string]string{"worker": "none"},
			map[string]string{"Lambda": "ok", "API Gateway": "ok"}, ""},
		{"GPUs that cannot start", account{concurrency: 1000}, map[string]string{"gpu": "true"},
			map[string]string{"Lambda": "ok", "API Gateway": "ok", "Fargate": "ok", "EC2: Running On-Demand G and VT instances": "fail"},
			"--service-code ec2 --quota-code L-DB2E81BA --desired-value 16"},
		{"GPUs beside the preview workers", account{concurrency: 1000, applied: map[string]float64{tasks: 10}},
			map[string]string{"gpu": "prepare"},
			map[string]string{"Lambda": "ok", "API Gateway": "ok", "Fargate": "ok", "EC2: Running On-Demand G and VT instances": "fail"},
			"--service-code ec2 --quota-code L-DB2E81BA --desired-value 16"},
		{"too few GPUs", account{concurrency: 1000, applied: map[string]float64{onDemand: 8}}, map[string]string{"gpu": "true"},
			map[string]string{"Lambda": "ok", "API Gateway": "ok", "Fargate": "ok", "EC2: Running On-Demand G and VT instances": "warn"}, ""},
		{"GPUs on the spot market", account{concurrency: 1000, applied: map[string]float64{spot: 64}},
			map[string]string{"gpu": "true", "gpu.spot": "true", "gpu.instances": "g5.xlarge,g5.2xlarge"},
			map[string]string{"Lambda": "ok", "API Gateway": "ok", "Fargate": "ok", "EC2: All G and VT Spot Instance Requests": "ok"}, ""},
		{"larger GPUs", account{concurrency: 1000}, map[string]string{"gpu": "true", "gpu.max": "1", "gpu.instances": "p5.48xlarge"},
			map[string]string{"Lambda": "ok", "API Gateway": "ok", "Fargate": "ok", "EC2: Running On-Demand P instances": "fail"},
			"--quota-code L-417A185B --desired-value 192"},
		{"larger GPUs on the spot market", account{concurrency: 1000, applied: map[string]float64{p4Spot: 200}},
			map[string]string{"gpu": "true", "gpu.max": "1", "gpu.spot": "true", "gpu.instances": "p5.4xlarge"},
			map[string]string{"Lambda": "ok", "API Gateway": "ok", "Fargate": "ok", "EC2: All P5 Spot Instance Requests": "fail"},
			"--quota-code L-C4BD4855 --desired-value 16"},
		{"older GPUs on the spot market", account{concurrency: 1000, applied: map[string]float64{p4Spot: 96}},
			map[string]string{"gpu": "true", "gpu.max": "1", "gpu.spot": "true", "gpu.instances": "p4d.24xlarge"},
			map[string]string{"Lambda": "ok", "API Gateway": "ok", "Fargate": "ok", "EC2: All P4, P3 and P2 Spot": "ok"}, ""},
		{"a deployer who may not look", account{denied: true}, map[string]string{"gpu": "true"},
			map[string]string{"Lambda": "warn", "API Gateway": "warn", "Fargate": "warn", "EC2: Running On-Demand G and VT instances": "warn"},
			"servicequotas:GetServiceQuota"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.account.byDefault = byDefault
			if c.account.titles == nil {
				c.account.titles = titles
			}
			server := httptest.NewServer(c.account)
			t.Cleanup(server.Close)
			found := deploycheck.Quotas(t.Context(), awstest.ConfigFor(server.URL), c.options)
			if len(found) != len(c.want) {
				t.Errorf("%d quotas, want %d: %+v", len(found), len(c.want), found)
			}
			said := ""
			for _, quota := range found {
				said += quota.Mend
				for name, state := range c.want {
					if strings.HasPrefix(quota.Name, name) && quota.State != state {
						t.Errorf("%s: %s %s, want %s", quota.Name, quota.State, quota.Detail, state)
					}
				}
				if quota.State != deploycheck.QuotaFine && quota.Mend == "" {
					t.Errorf("%s says not how to raise it", quota.Name)
				}
			}
			if !strings.Contains(said, c.says) {
				t.Errorf("%q does not say %q", said, c.says)
			}
		})
	}
}
