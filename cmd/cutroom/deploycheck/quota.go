package deploycheck

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/servicequotas"
	"github.com/aws/aws-sdk-go-v2/service/servicequotas/types"
	"github.com/aws/smithy-go"
)

// Quota is what was found about a quota of an account.
type Quota struct {
	Name string `json:"quota"`
	// State is "ok", "warn" or "fail": only where a deploy would hang does it fail.
	State  string `json:"state"`
	Detail string `json:"detail"`
	// Mend says how to raise it; empty if there is no need.
	Mend string `json:"mend,omitempty"`
}

// The states of a quota.
const (
	QuotaFine  = "ok"
	QuotaLow   = "warn"
	QuotaFatal = "fail"
)

// Quotas looks at the quotas of an account that a deploy with the options needs, which
// are those of CDK's context. What the deployer may not read is a warning.
func Quotas(ctx context.Context, settings aws.Config, options map[string]string) []Quota {
	q := quotas{options, settings.Region, servicequotas.NewFromConfig(settings), lambda.NewFromConfig(settings)}
	found := []Quota{q.concurrency(ctx)}
	for _, need := range q.needs() {
		found = append(found, q.look(ctx, need))
	}
	return found
}

type quotas struct {
	options   map[string]string
	region    string
	client    *servicequotas.Client
	functions *lambda.Client
}

// need is a quota and the least value with which a deploy works. Service, code and title are
// those of Service Quotas. The codes come from a public list of 2024 (PyPI,
// reapit-cdk-service-quotas 0.1.2) and not from AWS, so look compares the titles.
type need struct {
	name, service, code, title string

	least float64
	why   string
	// fatal says that a deploy hangs where the quota is 0.
	fatal bool
}

const (
	// vCPUs of a task, of an instance where its type does not say, and how many tasks
	// there may be unless the options say otherwise, as infra has them.
	workerCPUs, serviceCPUs, instanceCPUs = 2, 1, 8
	defaultWorkers, defaultGPUs           = 4, 2
	// leastConcurrency leaves room for event streams and waiting image edits beside
	// everything else. New accounts begin with 10.
	leastConcurrency = 100
	// ratePerSecond is what the stages of both APIs take at once.
	ratePerSecond = 1000
)

// number returns an option that is a number, else the default.
func (q quotas) number(name string, other int) int {
	if value, err := strconv.Atoi(q.options[name]); err == nil {
		return value
	}
	return other
}

// needs returns the quotas that matter, by the codes of Service Quotas.
func (q quotas) needs() []need {
	needs := []need{{
		name: "API Gateway: Throttle rate, in requests per second", service: "apigateway", code: "L-8A5B8E43",
		title: "Throttle rate", least: float64(q.number("requestsPerSecond", ratePerSecond)),
		why: "each API takes as many (requestsPerSecond)",
	}}
	containers := 0
	if q.options["realtime"] == "true" {
		containers += serviceCPUs
	}
	if q.options["ingest"] == "fargate" {
		containers += serviceCPUs
	}
	gpu := q.options["gpu"]
	if gpu != "true" && q.options["worker"] != "none" {
		containers += workerCPUs * q.number("workerMax", defaultWorkers)
	}
	if q.options["worker"] != "none" && q.options["smoke"] != "off" {
		containers += workerCPUs
	}
	if containers > 0 {
		needs = append(needs, need{
			name: "Fargate: On-Demand vCPU resource count", service: "fargate", code: "L-3032A538",
			title: "Fargate On-Demand vCPU resource count", least: float64(containers),
			why: "so many run at most (workerMax), and a deploy tries a task besides",
		})
	}
	if gpu == "true" || gpu == "prepare" {
		needs = append(needs, q.instances()...)
	}
	return needs
}

// instances returns the needs of the instances with GPUs: one task has one.
func (q quotas) instances() []need {
	most := q.number("gpu.max", defaultGPUs)
	onDemand, spot := most, 0
	if q.options["gpu.spot"] == "true" {
		onDemand = q.number("gpu.onDemand", 0)
		spot = most - onDemand
	}
	types := q.options["gpu.instances"]
	if types == "" {
		types = "g6e.2xlarge,g6e.4xlarge"
	}
	first, _, _ := strings.Cut(types, ",")
	first = strings.TrimSpace(first)
	cpus, why := cpusOf(first), "so many run at most (gpu.max)"
	var needs []need
	if onDemand > 0 {
		name, code := onDemandQuota(first)
		needs = append(needs, need{"EC2: " + name, "ec2", code, name, float64(onDemand * cpus), why, true})
	}
	if spot > 0 {
		name, code := spotQuota(first)
		needs = append(needs, need{"EC2: " + name, "ec2", code, name, float64(spot * cpus), why, true})
	}
	return needs
}

// onDemandQuota returns the quota of vCPUs that a type of instances is counted in.
func onDemandQuota(instance string) (name, code string) {
	if strings.HasPrefix(instance, "p") {
		return "Running On-Demand P instances", "L-417A185B"
	}
	return "Running On-Demand G and VT instances", "L-DB2E81BA"
}

// spotQuota is onDemandQuota for spot instances. P5 have a quota of their own.
func spotQuota(instance string) (name, code string) {
	switch {
	case strings.HasPrefix(instance, "p5"):
		return "All P5 Spot Instance Requests", "L-C4BD4855"
	case strings.HasPrefix(instance, "p"):
		return "All P4, P3 and P2 Spot Instance Requests", "L-7212CCBC"
	}
	return "All G and VT Spot Instance Requests", "L-3819A6DF"
}

// cpusOf returns how many vCPUs a type of instances has, by its size.
func cpusOf(instance string) int {
	_, size, _ := strings.Cut(strings.TrimSpace(instance), ".")
	const xlarge = 4
	if size == "xlarge" {
		return xlarge
	}
	if times, err := strconv.Atoi(strings.TrimSuffix(size, "xlarge")); err == nil {
		return times * xlarge
	}
	return instanceCPUs
}

// look compares a quota with what is needed. An account that never had one raised has
// AWS's default. A code that leads to another quota, by its title, tells nothing.
func (q quotas) look(ctx context.Context, n need) Quota {
	quota, err := q.read(ctx, n)
	if err == nil && (quota == nil || quota.Value == nil) {
		err = errors.New("AWS says nothing of it")
	}
	if err != nil {
		return unknown(n.name, err)
	}
	if title := aws.ToString(quota.QuotaName); title != "" && plain(title) != plain(n.title) {
		return Quota{
			Name: n.name, State: QuotaLow,
			Detail: fmt.Sprintf("could not be read: the code %s is that of %q, not of %q", n.code, title, n.title),
			Mend: fmt.Sprintf("Look for it in https://%s.console.aws.amazon.com/servicequotas/home/services/%s/quotas; %g is needed.",
				q.region, n.service, n.least),
		}
	}
	value := *quota.Value
	found := Quota{Name: n.name, State: QuotaFine, Detail: fmt.Sprintf("%g, and %g is needed: %s", value, n.least, n.why)}
	if value >= n.least {
		return found
	}
	found.State, found.Mend = QuotaLow, q.raise(n.service, n.code, n.least)
	if !quota.Adjustable {
		found.Mend = fmt.Sprintf("Ask AWS Support for %g: Service Quotas does not raise it.", n.least)
	}
	if value == 0 && n.fatal {
		found.State = QuotaFatal
		found.Detail += "; without any a deploy waits for instances for hours"
	}
	return found
}

// plain returns the letters and digits of a title, in lower case: AWS changes the rest.
func plain(title string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, title)
}

// read returns a quota of the account, or AWS's default.
func (q quotas) read(ctx context.Context, n need) (*types.ServiceQuota, error) {
	got, err := q.client.GetServiceQuota(ctx,
		&servicequotas.GetServiceQuotaInput{ServiceCode: aws.String(n.service), QuotaCode: aws.String(n.code)})
	var refused smithy.APIError
	if errors.As(err, &refused) && refused.ErrorCode() == "NoSuchResourceException" {
		byDefault, err := q.client.GetAWSDefaultServiceQuota(ctx, &servicequotas.GetAWSDefaultServiceQuotaInput{
			ServiceCode: aws.String(n.service), QuotaCode: aws.String(n.code)})
		if err != nil {
			return nil, err
		}
		return byDefault.Quota, nil
	}
	if err != nil {
		return nil, err
	}
	return got.Quota, nil
}

// concurrency looks at how many functions may run at once. Lambda itself knows: new
// accounts have less than the default that Service Quotas shows.
func (q quotas) concurrency(ctx context.Context) Quota {
	const name = "Lambda: Concurrent executions"
	got, err := q.functions.GetAccountSettings(ctx, &lambda.GetAccountSettingsInput{})
	if err != nil {
		return unknown(name, err)
	}
	if got.AccountLimit == nil {
		return unknown(name, errors.New("AWS says nothing of it"))
	}
	value := int(got.AccountLimit.ConcurrentExecutions)
	found := Quota{Name: name, State: QuotaFine, Detail: fmt.Sprintf("%d, and %d should be: an open stream of events, a "+
		"waiting image edit and a completion take one each", value, leastConcurrency)}
	if value < leastConcurrency {
		found.State, found.Mend = QuotaLow, q.raise("lambda", "L-B99A9384", 1000)
	}
	return found
}

// raise says how a quota is raised.
func (q quotas) raise(service, code string, value float64) string {
	return fmt.Sprintf("aws service-quotas request-service-quota-increase --region %s --service-code %s --quota-code %s "+
		"--desired-value %g\nor https://%s.console.aws.amazon.com/servicequotas/home/services/%s/quotas/%s",
		q.region, service, code, value, q.region, service, code)
}

// unknown says why a quota was not read.
func unknown(name string, err error) Quota {
	found := Quota{Name: name, State: QuotaLow, Detail: "could not be read"}
	var refused smithy.APIError
	if errors.As(err, &refused) {
		found.Detail += ": " + refused.ErrorCode()
		if strings.Contains(refused.ErrorCode(), "AccessDenied") {
			found.Mend = "Allow servicequotas:GetServiceQuota, servicequotas:GetAWSDefaultServiceQuota and " +
				"lambda:GetAccountSettings, or look in the console of Service Quotas."
		}
		return found
	}
	found.Detail += ": " + err.Error()
	return found
}
