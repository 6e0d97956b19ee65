package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/servicequotas"
	"github.com/aws/aws-sdk-go-v2/service/servicequotas/types"
	"github.com/aws/smithy-go"
)

type quota struct {
	// service, code and title identify the quota in Service Quotas. The codes come from a public list of 2024
	// (PyPI, reapit-cdk-service-quotas 0.1.2) and not from AWS, so the titles are compared too.
	service, code, title string
	least                int
	why                  string
	// fatal means that a deployment hangs if the quota is 0.
	fatal bool
	// state is "ok", "warn", or, if a deployment would hang, "fail". mend says how to raise the quota.
	state, detail, mend string
}

const (
	// These vCPUs and defaults are the same as in infra.
	workerCPUs, serviceCPUs     = 2, 1
	defaultWorkers, defaultGPUs = 4, 2
	defaultInstance             = "g6e.2xlarge"
	leastConcurrency            = 1000 // Lambda's usual default; new accounts have 10
	ratePerSecond               = 1000 // for both APIs together
)

// quotas returns the quotas that a deployment with this CDK context needs.
func quotas(options map[string]string) []quota {
	number := func(name string, other int) int {
		if value, err := strconv.Atoi(options[name]); err == nil {
			return value
		}
		return other
	}
	found := []quota{{service: "apigateway", code: "L-8A5B8E43", title: "Throttle rate",
		least: number("requestsPerSecond", ratePerSecond), why: "requests per second (requestsPerSecond)"}}
	containers := 0
	if options["realtime"] == "true" {
		containers += serviceCPUs
	}
	if options["ingest"] == "fargate" {
		containers += serviceCPUs
	}
	gpu, preview := options["gpu"], options["worker"] != "none"
	if preview && gpu != "true" {
		containers += workerCPUs * number("workerMax", defaultWorkers)
	}
	if containers > 0 {
		found = append(found, quota{service: "fargate", code: "L-3032A538", title: "Fargate On-Demand vCPU resource count",
			least: containers, why: "vCPUs at most (workerMax)"})
	}
	if gpu != "true" && gpu != "prepare" {
		return found
	}
	onDemand, spot := number("gpu.max", defaultGPUs), 0
	if options["gpu.spot"] == "true" {
		spot = onDemand - number("gpu.onDemand", 0)
		onDemand -= spot
	}
	instance, _, _ := strings.Cut(options["gpu.instances"], ",")
	if instance = strings.TrimSpace(instance); instance == "" {
		instance = defaultInstance
	}
	for i, n := range []int{onDemand, spot} {
		if n > 0 {
			title, code := instanceQuota(instance, i == 1)
			found = append(found, quota{service: "ec2", code: code, title: title, least: n * cpusOf(instance),
				why: "vCPUs at most (gpu.max)", fatal: true})
		}
	}
	return found
}

func instanceQuota(instance string, spot bool) (title, code string) {
	p, p5 := strings.HasPrefix(instance, "p"), strings.HasPrefix(instance, "p5")
	switch {
	case spot && p5:
		return "All P5 Spot Instance Requests", "L-C4BD4855"
	case spot && p:
		return "All P4, P3 and P2 Spot Instance Requests", "L-7212CCBC"
	case spot:
		return "All G and VT Spot Instance Requests", "L-3819A6DF"
	case p:
		return "Running On-Demand P instances", "L-417A185B"
	}
	return "Running On-Demand G and VT instances", "L-DB2E81BA"
}

func cpusOf(instance string) int {
	const xlarge = 4
	_, size, _ := strings.Cut(instance, ".")
	times := 1
	_, _ = fmt.Sscanf(size, "%dxlarge", &times)
	return times * xlarge
}

// readQuotas compares quotas with a deployment's requirements. A quota that cannot be read causes a warning.
func readQuotas(ctx context.Context, settings aws.Config, options map[string]string) []quota {
	client := servicequotas.NewFromConfig(settings)
	found := []quota{concurrency(ctx, settings)}
	for _, q := range quotas(options) {
		got, err := readQuota(ctx, client, q)
		switch {
		case err != nil:
			q.unread(err)
		case got == nil || got.Value == nil:
			q.unread(errNoValue)
		case !strings.EqualFold(aws.ToString(got.QuotaName), q.title):
			q.unread(fmt.Errorf("the code %s belongs to %q", q.code, aws.ToString(got.QuotaName)))
		default:
			q.compare(settings.Region, int(*got.Value), got.Adjustable)
		}
		found = append(found, q)
	}
	return found
}

var errNoValue = errors.New("AWS returned no value")

// readQuota returns one of the account's quotas, or AWS's default if the quota was never raised.
func readQuota(ctx context.Context, client *servicequotas.Client, q quota) (*types.ServiceQuota, error) {
	got, err := client.GetServiceQuota(ctx,
		&servicequotas.GetServiceQuotaInput{ServiceCode: aws.String(q.service), QuotaCode: aws.String(q.code)})
	if err == nil {
		return got.Quota, nil
	}
	if !isCode(err, "NoSuchResourceException") {
		return nil, err
	}
	byDefault, err := client.GetAWSDefaultServiceQuota(ctx,
		&servicequotas.GetAWSDefaultServiceQuotaInput{ServiceCode: aws.String(q.service), QuotaCode: aws.String(q.code)})
	if err != nil {
		return nil, err
	}
	return byDefault.Quota, nil
}

// concurrency asks Lambda directly, because new accounts have less than the default in Service Quotas.
func concurrency(ctx context.Context, settings aws.Config) quota {
	q := quota{service: "lambda", code: "L-B99A9384", title: "Concurrent executions", least: leastConcurrency,
		why: "an open stream, a waiting image edit and a completion take one each"}
	switch got, err := lambda.NewFromConfig(settings).GetAccountSettings(ctx, &lambda.GetAccountSettingsInput{}); {
	case err != nil:
		q.unread(err)
	case got.AccountLimit == nil:
		q.unread(errNoValue)
	default:
		q.compare(settings.Region, int(got.AccountLimit.ConcurrentExecutions), true)
	}
	return q
}

func (q *quota) compare(region string, value int, adjustable bool) {
	q.state, q.detail = "ok", fmt.Sprintf("%d, needed: %d %s", value, q.least, q.why)
	if value >= q.least {
		return
	}
	q.state = "warn"
	q.mend = fmt.Sprintf("aws service-quotas request-service-quota-increase --region %s --service-code %s "+
		"--quota-code %s --desired-value %d", region, q.service, q.code, q.least)
	if !adjustable {
		q.mend = fmt.Sprintf("Ask AWS Support for %d: Service Quotas cannot raise it.", q.least)
	}
	if value == 0 && q.fatal {
		q.state = "fail"
		q.detail += "; with 0 a deployment waits hours for instances"
	}
}

func (q *quota) unread(err error) {
	var failure smithy.APIError
	if errors.As(err, &failure) {
		err = errors.New(failure.ErrorCode())
	}
	q.state, q.detail = "warn", "cannot be read: "+err.Error()
	q.mend = fmt.Sprintf("Allow servicequotas:GetServiceQuota, servicequotas:GetAWSDefaultServiceQuota and "+
		"lambda:GetAccountSettings, or check the console of Service Quotas: %d is required.", q.least)
}
