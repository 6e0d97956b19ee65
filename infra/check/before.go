package main

import (
	"cmp"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"cutroom/shared/platform/awsclient"
)

type account struct{ config aws.Config }

// quota is a limit of the account in the region.
type quota struct {
	// service, code and title identify the quota in Service Quotas. The codes come from public lists and not from AWS,
	// so the titles are compared too.
	service, code, title string
	// wanted is the amount that the deployment uses at most, as why explains. A deployment with less than least fails
	// or waits for hours.
	wanted, least int
	why           string
	// listed is the EC2 action that lists the existing resources, or "" if they do not count.
	listed string
}

const (
	// These vCPUs and defaults are the same as in infra.
	workerCPUs, serviceCPUs     = 2, 1
	defaultWorkers, defaultGPUs = 4, 2
	defaultInstances            = "g6e.2xlarge,g6e.4xlarge"
	enoughConcurrency           = 1000 // Lambda's usual default; new accounts have 10
)

// plan is the context of a deployment.
type plan map[string]string

func (p plan) number(name string, otherwise int) int {
	if value, err := strconv.Atoi(p[name]); err == nil {
		return value
	}
	return otherwise
}

func (p plan) gpus() bool { return p["gpu"] == "true" || p["gpu"] == "prepare" }

// cpus returns the maximum vCPUs of the plan's containers, the vCPUs of one container, and the maximum on spare capacity.
func (p plan) cpus() (most, one, spot int) {
	if p["worker"] != "none" && p["gpu"] != "true" {
		most, one = workerCPUs*p.number("workerMax", defaultWorkers), workerCPUs
	}
	if p["workerSpot"] == "true" {
		most, one, spot = 0, 0, most
	}
	for _, on := range []bool{p["realtime"] == "true", p["ingest"] == "fargate"} {
		if on {
			most, one = most+serviceCPUs, serviceCPUs
		}
	}
	return most, one, spot
}

func (p plan) quotas() []quota {
	cpus, one, spotCPUs := p.cpus()
	networks, addresses := 0, 0
	if cpus+spotCPUs > 0 && p["networkVpc"] == "" {
		networks++
	}
	if p.gpus() && p["gpu.vpc"] == "" {
		networks, addresses = networks+1, 1
	}
	const stage = "for this stage"
	found := []quota{
		{"lambda", "L-B99A9384", "Concurrent executions", max(enoughConcurrency, p.number("concurrency", 0)), p.number("concurrency", 0),
			"for streams, waiting image edits and completions", ""},
		{"fargate", "L-3032A538", "Fargate On-Demand vCPU resource count", cpus, one, "at most (workerMax)", ""},
		{"fargate", "L-36FBB829", "Fargate Spot vCPU resource count", spotCPUs, min(workerCPUs, spotCPUs), "at most (workerMax)", ""},
		{"vpc", "L-F678F1CE", "VPCs per Region", networks, networks, stage, "DescribeVpcs"},
		{"vpc", "L-A4707A72", "Internet gateways per Region", networks, networks, stage, "DescribeInternetGateways"},
		{"ec2", "L-0263D0A3", "EC2-VPC Elastic IPs", addresses, addresses, stage, "DescribeAddresses"},
	}
	if !p.gpus() {
		return found
	}
	onDemand, spot := p.number("gpu.max", defaultGPUs), 0
	if p["gpu.spot"] == "true" {
		onDemand, spot = p.number("gpu.onDemand", 0), onDemand-p.number("gpu.onDemand", 0)
	}
	return append(append(found, p.instances(onDemand, false)...), p.instances(spot, true)...)
}

// instances returns the quotas for n instances with GPUs. A deployment waits for hours if not even the smallest fits.
func (p plan) instances(n int, spot bool) []quota {
	var found []quota
	for name := range strings.SplitSeq(cmp.Or(p["gpu.instances"], defaultInstances), ",") {
		family, size, _ := strings.Cut(strings.TrimSpace(name), ".")
		q := quota{service: "ec2", code: "L-DB2E81BA", title: "Running On-Demand G and VT instances", why: "vCPUs at most (gpu.max)"}
		switch p5 := strings.HasPrefix(family, "p5"); {
		case spot && p5:
			q.title, q.code = "All P5 Spot Instance Requests", "L-C4BD4855"
		case spot && strings.HasPrefix(family, "p"):
			q.title, q.code = "All P4, P3 and P2 Spot Instance Requests", "L-7212CCBC"
		case spot:
			q.title, q.code = "All G and VT Spot Instance Requests", "L-3819A6DF"
		case strings.HasPrefix(family, "p"):
			q.title, q.code = "Running On-Demand P instances", "L-417A185B"
		}
		times := 1
		_, _ = fmt.Sscanf(size, "%dxlarge", &times) // "xlarge" has no number
		q.least = 4 * times
		q.wanted = n * q.least
		if last := len(found) - 1; last >= 0 && found[last].code == q.code {
			found[last].least = min(found[last].least, q.least)
			continue
		}
		found = append(found, q)
	}
	return found
}

// before prints whether the account can hold the deployment. It returns an error if the deployment would fail or hang.
func before(ctx context.Context, settings aws.Config, p plan, out io.Writer) error {
	const enough = time.Minute
	ctx, cancel := context.WithTimeout(ctx, enough)
	defer cancel()
	if _, err := settings.Credentials.Retrieve(ctx); err != nil {
		return fmt.Errorf("read the AWS credentials: %w", err)
	}
	a := account{settings}
	if err := a.keepSecret(ctx, p, out); err != nil {
		return err
	}
	hangs := false
	for _, q := range p.quotas() {
		if q.wanted > 0 {
			hangs = !a.compare(ctx, q, cmp.Or(p["stage"], "dev"), out) || hangs
		}
	}
	if cpus, _, spot := p.cpus(); cpus+spot > 0 || p.gpus() {
		if err := a.createECSRole(ctx); err != nil {
			fmt.Fprintf(out, "warn  iam: cannot read or create the service-linked role of ECS: %v\n"+
				"      aws iam create-service-linked-role --aws-service-name ecs.amazonaws.com\n", err)
		}
	}
	if hangs && ctx.Err() == nil {
		return errors.New(`the deployment would fail or hang: raise the quotas marked "fail", or skip this check with PREFLIGHT=off`)
	}
	return ctx.Err()
}

// keepSecret returns an error if the stage's secret is from 0.1.0 and the deployment would replace it.
func (a account) keepSecret(ctx context.Context, p plan, out io.Writer) error {
	name := "cutroom-" + cmp.Or(p["stage"], "dev") + "-secret"
	text, err := awsclient.Call(ctx, a.config, "secretsmanager", "secretsmanager.DescribeSecret", fmt.Sprintf(`{"SecretId":%q}`, name))
	if p["secretName"] == "secret" || isCode(err, "ResourceNotFoundException") || strings.Contains(string(text), `"DeletedDate"`) {
		return nil
	}
	if err != nil {
		fmt.Fprintf(out, "warn  secretsmanager: cannot read the secret %s: %v\n", name, err)
		return nil
	}
	return fmt.Errorf("the secret %s, which 0.1.0 created, exists: add -c secretName=secret, or cursors, shared links, client tokens "+
		"and webhook secrets change. If the stage no longer uses it, delete it", name)
}

// compare prints a quota, and the command that raises it if it is too low. It reports whether the deployment can work.
func (a account) compare(ctx context.Context, q quota, stage string, out io.Writer) bool {
	value, err := a.value(ctx, q)
	others := 0
	if err == nil && q.listed != "" {
		others, err = a.others(ctx, q.listed, stage)
	}
	if err != nil {
		fmt.Fprintf(out, "warn  %s: %s: cannot be read: %v\n      Look at it in the console of Service Quotas: %d is required.\n",
			q.service, q.title, err, q.wanted)
		return true
	}
	state := "ok"
	if value < others+q.least {
		state = "fail"
	} else if value < others+q.wanted {
		state = "warn"
	}
	fmt.Fprintf(out, "%-4s  %s: %s: %d, in use elsewhere: %d, needed: %d %s\n", state, q.service, q.title, value, others, q.wanted, q.why)
	if state != "ok" {
		fmt.Fprintf(out, "      aws service-quotas request-service-quota-increase --region %s --service-code %s --quota-code %s "+
			"--desired-value %d\n", a.config.Region, q.service, q.code, others+q.wanted)
	}
	return state != "fail"
}

// value returns a quota of the account in the region, or AWS's default if it was never raised.
func (a account) value(ctx context.Context, q quota) (int, error) {
	if q.service == "lambda" {
		// Ask Lambda itself, because new accounts have less than Service Quotas says.
		got, err := lambda.NewFromConfig(a.config).GetAccountSettings(ctx, &lambda.GetAccountSettingsInput{})
		if err != nil {
			return 0, err
		}
		return int(got.AccountLimit.ConcurrentExecutions), nil
	}
	asked := fmt.Sprintf(`{"ServiceCode":%q,"QuotaCode":%q}`, q.service, q.code)
	text, err := awsclient.Call(ctx, a.config, "servicequotas", "ServiceQuotasV20190624.GetServiceQuota", asked)
	if isCode(err, "NoSuchResourceException") {
		text, err = awsclient.Call(ctx, a.config, "servicequotas", "ServiceQuotasV20190624.GetAWSDefaultServiceQuota", asked)
	}
	if err != nil {
		return 0, err
	}
	var got struct {
		Quota struct {
			QuotaName string
			Value     float64
		}
	}
	if err := json.Unmarshal(text, &got); err != nil {
		return 0, err
	}
	if !strings.EqualFold(got.Quota.QuotaName, q.title) {
		return 0, fmt.Errorf("the code %s belongs to %q", q.code, got.Quota.QuotaName)
	}
	return int(got.Quota.Value), nil
}

// others returns the number of the region's resources outside the stage.
func (a account) others(ctx context.Context, action, stage string) (int, error) {
	text, err := awsclient.Call(ctx, a.config, "ec2", "", "Action="+action+"&Version=2016-11-15")
	if err != nil {
		return 0, err
	}
	type resource struct {
		Tags []struct {
			Key   string `xml:"key"`
			Value string `xml:"value"`
		} `xml:"tagSet>item"`
	}
	var got struct {
		Networks  []resource `xml:"vpcSet>item"`
		Gateways  []resource `xml:"internetGatewaySet>item"`
		Addresses []resource `xml:"addressesSet>item"`
	}
	if err := xml.Unmarshal(text, &got); err != nil {
		return 0, err
	}
	n := 0
	for _, r := range append(append(got.Networks, got.Gateways...), got.Addresses...) {
		tags := map[string]string{}
		for _, tag := range r.Tags {
			tags[tag.Key] = tag.Value
		}
		if tags["service"] != "cutroom" || tags["stage"] != stage {
			n++
		}
	}
	return n, nil
}

// createECSRole creates the role with which ECS manages networks, if the account does not have it. Otherwise the first
// deployment fails while ECS itself creates the role.
func (a account) createECSRole(ctx context.Context) error {
	_, err := awsclient.Call(ctx, a.config, "iam", "", "Action=GetRole&RoleName=AWSServiceRoleForECS&Version=2010-05-08")
	if isCode(err, "NoSuchEntity") {
		_, err = awsclient.Call(ctx, a.config, "iam", "", "Action=CreateServiceLinkedRole&AWSServiceName=ecs.amazonaws.com&Version=2010-05-08")
	}
	return err
}
