package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"cutroom/shared/testkit/awstest"
)

// quotaService responds as documented for Service Quotas, Lambda, EC2, IAM and Secrets Manager.
type quotaService struct {
	concurrency int
	// quotas maps codes to the account's quotas, if they differ from AWS's defaults.
	quotas map[string]float64
	// networks maps a stage to its number of VPCs, and "" to the number of other programs.
	networks map[string]int
	denied   bool
	// secret describes the secret of 0.1.0. It is empty if there is no such secret.
	secret string
	// role is whether the account has the service-linked role of ECS. asked lists IAM's actions.
	role  bool
	asked []string
}

var knownQuotas = map[string]struct {
	name  string
	value float64
}{
	"fargate L-3032A538": {"Fargate On-Demand vCPU resource count", 6},
	"fargate L-36FBB829": {"Fargate Spot vCPU resource count", 6},
	"vpc L-F678F1CE":     {"VPCs per Region", 5},
	"vpc L-A4707A72":     {"Internet gateways per Region", 5},
	"ec2 L-0263D0A3":     {"EC2-VPC Elastic IPs", 5},
	"ec2 L-DB2E81BA":     {"Running On-Demand G and VT instances", 0},
	"ec2 L-3819A6DF":     {"All G and VT Spot Instance Requests", 0},
	"ec2 L-417A185B":     {"Running On-Demand P instances", 0},
	"ec2 L-C4BD4855":     {"All P5 Spot Instance Requests", 0},
	"ec2 L-7212CCBC":     {"Renamed by AWS", 0},
}

func (a *quotaService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	form, _ := url.ParseQuery(string(body)) // empty for JSON
	reject := func(code string) {
		w.Header().Set("X-Amzn-ErrorType", code)
		w.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprintf(w, `{"__type":"com.amazonaws#%s"}`, code)
	}
	_, target, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	switch action := target + form.Get("Action"); {
	case a.denied:
		reject("AccessDeniedException")
	case strings.HasSuffix(r.URL.Path, "/account-settings"):
		_, _ = fmt.Fprintf(w, `{"AccountLimit":{"ConcurrentExecutions":%d}}`, a.concurrency)
	case strings.HasSuffix(action, "ServiceQuota"):
		a.quota(w, action, body, reject)
	case action == "DescribeSecret" && a.secret == "":
		reject("ResourceNotFoundException")
	case action == "DescribeSecret":
		_, _ = io.WriteString(w, a.secret)
	case strings.HasPrefix(action, "Describe"):
		element := map[string]string{"DescribeVpcs": "vpcSet", "DescribeInternetGateways": "internetGatewaySet",
			"DescribeAddresses": "addressesSet"}[action]
		_, _ = fmt.Fprintf(w, "<%sResponse><%s>", action, element)
		for stage, n := range a.networks {
			tags := "<tagSet><item><key>service</key><value>cutroom</value></item><item><key>stage</key><value>" + stage +
				"</value></item></tagSet>"
			_, _ = io.WriteString(w, strings.Repeat("<item>"+tags+"</item>", n))
		}
		_, _ = fmt.Fprintf(w, "</%s></%sResponse>", element, action)
	case action == "GetRole" && !a.role:
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, "<ErrorResponse><Error><Code>NoSuchEntity</Code></Error></ErrorResponse>")
	default:
		a.role = true
		a.asked = append(a.asked, action+" "+form.Get("AWSServiceName")+form.Get("RoleName"))
	}
}

func (a *quotaService) quota(w io.Writer, action string, body []byte, reject func(string)) {
	var asked struct{ ServiceCode, QuotaCode string }
	_ = json.Unmarshal(body, &asked) // the code is then unknown
	known, ok := knownQuotas[asked.ServiceCode+" "+asked.QuotaCode]
	value, applied := a.quotas[asked.QuotaCode]
	if !applied {
		value = known.value
	}
	if !ok || !applied && action == "GetServiceQuota" {
		reject("NoSuchResourceException")
		return
	}
	_, _ = fmt.Fprintf(w, `{"Quota":{"QuotaName":%q,"Value":%g}}`, known.name, value)
}

// A quota that makes a deployment fail or wait for hours stops it. Any other low quota is a warning.
func TestLowQuotasStopDeployments(t *testing.T) {
	const gpus, gpuSpot = "L-DB2E81BA", "L-3819A6DF"
	enough := map[string]float64{"L-3032A538": 100, gpus: 64, gpuSpot: 64, "L-417A185B": 384}
	for name, c := range map[string]struct {
		account quotaService
		plan    plan
		fails   bool
		says    []string
	}{
		"an old account": {quotaService{concurrency: 1000, quotas: enough}, nil, false,
			[]string{"ok    vpc: VPCs per Region: 5, in use elsewhere: 0, needed: 1 for this stage\n"}},
		"a new account": {quotaService{concurrency: 10}, nil, false, []string{
			"warn  lambda: Concurrent executions: 10, in use elsewhere: 0, needed: 1000", "--service-code lambda --quota-code L-B99A9384 --desired-value 1000",
			"warn  fargate: Fargate On-Demand vCPU resource count: 6, in use elsewhere: 0, needed: 8"}},
		"too few functions to reserve": {quotaService{concurrency: 1000}, plan{"concurrency": "2000"}, true,
			[]string{"fail  lambda: Concurrent executions: 1000, in use elsewhere: 0, needed: 2000"}},
		"no vCPU for a worker":      {quotaService{quotas: map[string]float64{"L-3032A538": 1}}, nil, true, []string{"fail  fargate"}},
		"workers on spare capacity": {quotaService{}, plan{"workerSpot": "true"}, false, []string{"warn  fargate: Fargate Spot vCPU resource count: 6", "ok    vpc"}},
		"five other networks": {quotaService{networks: map[string]int{"": 3, "prod": 2}}, nil, true, []string{
			"fail  vpc: VPCs per Region: 5, in use elsewhere: 5, needed: 1 for this stage", "--quota-code L-F678F1CE --desired-value 6",
			"fail  vpc: Internet gateways per Region"}},
		"five networks, one of the stage": {quotaService{networks: map[string]int{"": 4, "dev": 1}}, nil, false, []string{"ok    vpc"}},
		"the deployer's network": {quotaService{networks: map[string]int{"": 5}},
			plan{"networkVpc": "vpc-1", "gpu": "true", "gpu.vpc": "vpc-1", "gpu.max": "1", "gpu.instances": "g5.xlarge"}, true,
			[]string{"fail  ec2: Running On-Demand G and VT instances: 0, in use elsewhere: 0, needed: 4"}},
		"no address for the NAT gateway": {quotaService{networks: map[string]int{"": 5}, quotas: map[string]float64{
			"L-F678F1CE": 9, "L-A4707A72": 9, gpus: 64}}, plan{"gpu": "true"}, true, []string{"fail  ec2: EC2-VPC Elastic IPs"}},
		"no GPUs": {quotaService{}, plan{"gpu": "prepare"}, true,
			[]string{"fail  ec2: Running On-Demand G and VT instances: 0, in use elsewhere: 0, needed: 16", "--quota-code L-DB2E81BA --desired-value 16"}},
		"GPUs for less than an instance": {quotaService{quotas: map[string]float64{gpus: 4}}, plan{"gpu": "true"}, true, []string{"fail  ec2: Running On-Demand G"}},
		"GPUs for a single instance":     {quotaService{quotas: map[string]float64{gpus: 8}}, plan{"gpu": "true"}, false, []string{"warn  ec2: Running On-Demand G"}},
		"spot and larger GPUs": {quotaService{quotas: enough},
			plan{"gpu": "true", "gpu.spot": "true", "gpu.onDemand": "1", "gpu.instances": "g6e.xlarge, p5.48xlarge"}, true,
			[]string{"ok    ec2: All G and VT Spot", "fail  ec2: All P5 Spot Instance Requests: 0, in use elsewhere: 0, needed: 192", "ok    ec2: Running On-Demand P"}},
		"a renamed quota": {quotaService{}, plan{"gpu": "true", "gpu.spot": "true", "gpu.instances": "p4d.24xlarge"}, false,
			[]string{`warn  ec2: All P4, P3 and P2 Spot Instance Requests: cannot be read: the code L-7212CCBC belongs to "Renamed by AWS"`}},
		"a deployer without permissions": {quotaService{denied: true}, plan{"gpu": "true"}, false,
			[]string{"cannot be read: api error AccessDeniedException", "warn  secretsmanager: cannot read the secret cutroom-dev-secret", "warn  iam: cannot read or create the service-linked role"}},
		"the secret of 0.1.0":       {quotaService{secret: "{}"}, nil, true, []string{"the secret cutroom-dev-secret, which 0.1.0 created, exists: add -c secretName=secret"}},
		"the secret of 0.1.0, kept": {quotaService{secret: "{}"}, plan{"secretName": "secret"}, false, nil},
		"a deleted secret of 0.1.0": {quotaService{secret: `{"DeletedDate":1.7e9}`}, nil, false, nil},
		"no containers":             {quotaService{networks: map[string]int{"": 5}}, plan{"worker": "none"}, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(&c.account)
			t.Cleanup(server.Close)
			var out bytes.Buffer
			err := before(t.Context(), awstest.ConfigFor(server.URL), c.plan, &out)
			if (err != nil) != c.fails {
				t.Errorf("the error is %v", err)
			}
			for _, line := range c.says {
				if !strings.Contains(out.String()+fmt.Sprint(err), line) {
					t.Errorf("it does not say %q:\n%s", line, &out)
				}
			}
		})
	}
}

// In a new account, the first service fails while ECS creates its role.
func TestRoleOfECSIsCreatedOnce(t *testing.T) {
	account := &quotaService{}
	server := httptest.NewServer(account)
	defer server.Close()
	for range 2 {
		if err := before(t.Context(), awstest.ConfigFor(server.URL), plan{}, io.Discard); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Join(account.asked, ", "); got != "CreateServiceLinkedRole ecs.amazonaws.com, GetRole AWSServiceRoleForECS" {
		t.Errorf("it calls %s", got)
	}
}
