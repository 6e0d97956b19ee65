package cost

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/adapter/sqsqueue"
	"cutroom/shared/app/awscost"
	"cutroom/shared/domain/session"
)

// hours is how many hours a month has.
const hours = awscost.HoursOfMonth

// lanes is how many queues a worker polls and reports its presence for, each with one
// slot, as it has two processors (cmd/worker).
const lanes = 2

// Five pollers of Lambda poll each SQS queue that starts a function, each for 20 s at a
// time, even while the queue is empty (aws.amazon.com/lambda/faqs; Lambda Developer
// Guide, "Amazon SQS event source mappings").
const pollsOfQueue = 5 * 3 * 60 * hours

// template is the part of a CloudFormation template that matters here.
type template struct{ Resources map[string]resource }

type resource struct {
	Type       string
	Properties struct {
		// FunctionName is a name or a reference.
		FunctionName        any
		Family, Cpu, Memory string
		MemorySize          int
		DesiredCount        int
		ScheduleExpression  string
		Metrics             []struct{ MetricStat map[string]any }
		AccessLogSetting    struct{ Format string }
		EphemeralStorage    struct{ SizeInGiB float64 }
		Subnets             []any
		EventSourceArn      struct {
			Att []string `json:"Fn::GetAtt"`
		}
		TaskDefinition struct{ Ref string }
	}
}

// deploy describes a deploy: the default one, and one with realtime=true.
type deploy struct {
	standard, realtime template
	memory             map[string]int
	accessLog          int
}

// describe makes the templates, as cdk synth does.
func (w *world) describe(ctx context.Context) (deploy, error) {
	// Of a function's program the template has only the path.
	functions := w.t.TempDir()
	folders, err := filepath.Glob(filepath.Join("functions", "*", "main.go"))
	if err != nil {
		return deploy{}, err
	}
	for _, main := range folders {
		folder := filepath.Join(functions, filepath.Base(filepath.Dir(main)))
		if err := os.Mkdir(folder, 0o755); err != nil {
			return deploy{}, err
		}
		if err := os.WriteFile(filepath.Join(folder, "bootstrap"), []byte(folder), 0o755); err != nil {
			return deploy{}, err
		}
	}
	app := filepath.Join(w.t.TempDir(), "infra")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", app, "./infra").CombinedOutput(); err != nil {
		return deploy{}, fmt.Errorf("build the app: %w\n%s", err, out)
	}
	d := deploy{memory: map[string]int{}}
	if d.standard, err = w.synthesize(ctx, app, map[string]string{"functions": functions}); err != nil {
		return d, err
	}
	if d.realtime, err = w.synthesize(ctx, app, map[string]string{
		"functions": functions, "realtime": "true", "realtimeDomain": "stream.example.com",
		"realtimeCertificate": "arn:aws:acm:us-east-1:000000000000:certificate/none",
	}); err != nil {
		return d, err
	}
	for _, r := range d.standard.Resources {
		if r.Type == "AWS::Lambda::Function" {
			name, _ := r.Properties.FunctionName.(string)
			d.memory[strings.TrimPrefix(name, "cutroom-dev-")] = r.Properties.MemorySize
		}
		// The names of the variables are longer than their values.
		d.accessLog = max(d.accessLog, logBytes(r.Properties.AccessLogSetting.Format+"\n"))
	}
	return d, nil
}

func (w *world) synthesize(ctx context.Context, app string, values map[string]string) (template, error) {
	context, err := json.Marshal(values)
	if err != nil {
		return template{}, err
	}
	out := w.t.TempDir()
	synth := exec.CommandContext(ctx, app)
	synth.Env = append(os.Environ(), "CDK_OUTDIR="+out, "CDK_CONTEXT_JSON="+string(context))
	if text, err := synth.CombinedOutput(); err != nil {
		return template{}, fmt.Errorf("synthesize: %w\n%s", err, text)
	}
	text, err := os.ReadFile(filepath.Join(out, "Cutroom-dev.template.json"))
	if err != nil {
		return template{}, err
	}
	return readTemplate(text)
}

// readTemplate reads a template. Properties of resources that are not needed here may
// have other types.
func readTemplate(text []byte) (template, error) {
	var raw struct {
		Resources map[string]struct {
			Type       string
			Properties json.RawMessage
		}
	}
	if err := json.Unmarshal(text, &raw); err != nil {
		return template{}, err
	}
	t := template{Resources: map[string]resource{}}
	for name, r := range raw.Resources {
		kept := resource{Type: r.Type}
		if priced[r.Type] {
			if err := json.Unmarshal(r.Properties, &kept.Properties); err != nil {
				return template{}, fmt.Errorf("%s: %w", name, err)
			}
		}
		t.Resources[name] = kept
	}
	return t, nil
}

// priced are the types of resources whose properties are read.
var priced = map[string]bool{
	"AWS::Lambda::Function": true, "AWS::Lambda::EventSourceMapping": true, "AWS::ApiGateway::Stage": true,
	"AWS::CloudWatch::Alarm": true, "AWS::Events::Rule": true, "AWS::ECS::TaskDefinition": true, "AWS::ECS::Service": true,
	"AWS::ElasticLoadBalancingV2::LoadBalancer": true,
}

// counts returns what a deploy uses without calls, and what a worker uses in an hour.
func (d deploy) counts() awscost.Counts {
	c := awscost.Counts{
		Idle: d.standard.month(), Looks: d.standard.looks(), Realtime: awscost.Quantities{},
		WorkerHour: d.standard.hour("cutroom-dev-worker"),
	}
	for item, n := range d.realtime.month() {
		if more := n - c.Idle[item]; more != 0 {
			c.Realtime[item] = more
		}
	}
	// An instance renews its lease by a read and a write (docs/aws-calls.md,
	// "Sessions").
	renewals := hours * float64(time.Hour/session.RenewEvery)
	c.Realtime.Add(awscost.Quantities{awscost.ReadUnit: renewals, awscost.WriteUnit: renewals}, 1)
	for _, r := range d.standard.Resources {
		if r.Type == "AWS::CloudWatch::Alarm" {
			c.Alarms++
		}
	}
	perHour := func(every time.Duration) float64 { return lanes * float64(time.Hour/every) }
	c.WorkerHour[awscost.WriteUnit] += perHour(dynamo.BeatEvery)
	c.WorkerHour[awscost.QueueRequest] += perHour(sqsqueue.DefaultPollTime)
	c.WorkerHour[awscost.FairQueueRequest] += perHour(sqsqueue.DefaultPollTime)
	c.Idle.Tidy()
	c.Realtime.Tidy()
	c.WorkerHour.Tidy()
	return c
}

// Month returns what a deploy with the template uses in a month without calls, but for
// the looks at whether workers are needed, and how many of those there are. It fails if
// the text is not a template.
func Month(text []byte) (q awscost.Quantities, looks float64, err error) {
	t, err := readTemplate(text)
	if err != nil {
		return nil, 0, fmt.Errorf("read the template: %w", err)
	}
	q = t.month()
	q.Tidy()
	return q, t.looks(), nil
}

// Each look of the function steps for batches that wait is three reads, and takes stepLook
// seconds with stepMemory GB.
const (
	stepReads  = 3
	stepLook   = 0.03
	stepMemory = 1
	stepRate   = "rate(5 minutes)"
)

// looks returns how often a month the function scale is started.
func (t template) looks() float64 {
	n := 0.0
	for _, r := range t.Resources {
		switch r.Properties.ScheduleExpression {
		case "":
		case "rate(1 minute)":
			n += 60 * hours
		case stepRate: // the looks of steps, see month
		default:
			// What has no price here must not count as nothing.
			n = math.NaN()
		}
	}
	return n
}

// month returns what a deploy uses in a month without calls.
func (t template) month() awscost.Quantities {
	q := awscost.Quantities{}
	for _, r := range t.Resources {
		switch p := r.Properties; r.Type {
		case "AWS::CloudWatch::Alarm":
			// An alarm on an expression is billed by the metrics in it.
			metrics := 0
			for _, m := range p.Metrics {
				if m.MetricStat != nil {
					metrics++
				}
			}
			q[awscost.AlarmMetric] += float64(max(1, metrics))
		case "AWS::CloudWatch::awscost.Dashboard":
			q[awscost.Dashboard]++
		case "AWS::Events::Rule":
			if p.ScheduleExpression == stepRate {
				n := 12.0 * hours
				q[awscost.FunctionRequest] += n
				q[awscost.FunctionTime] += n * stepLook * stepMemory
				q[awscost.ReadUnit] += n * stepReads
			}
		case "AWS::SecretsManager::Secret":
			q[awscost.Secret]++
		case "AWS::Lambda::EventSourceMapping":
			// Streams of tables are polled free of charge.
			if att := p.EventSourceArn.Att; len(att) == 2 && t.Resources[att[0]].Type == "AWS::SQS::Queue" {
				q[awscost.QueueRequest] += pollsOfQueue
			}
		case "AWS::ElasticLoadBalancingV2::LoadBalancer":
			q[awscost.Balancer] += hours
			q[awscost.PublicAddress] += hours * float64(len(p.Subnets))
		case "AWS::ECS::Service":
			q.Add(t.hour(t.Resources[p.TaskDefinition.Ref].Properties.Family), hours*float64(p.DesiredCount))
		case "AWS::EC2::NatGateway", "AWS::KMS::Key":
			// Neither exists; if one is added, the figure must change.
			q[awscost.Item(r.Type)]++
		}
	}
	return q
}

// hour returns what a task of a family uses in an hour.
func (t template) hour(family string) awscost.Quantities {
	for _, r := range t.Resources {
		p := r.Properties
		if r.Type != "AWS::ECS::TaskDefinition" || p.Family != family {
			continue
		}
		cpu, _ := strconv.ParseFloat(p.Cpu, 64)
		memory, _ := strconv.ParseFloat(p.Memory, 64)
		return awscost.Quantities{
			awscost.ContainerCPU: cpu / 1024, awscost.ContainerMemory: memory / 1024, awscost.PublicAddress: 1,
			awscost.ContainerDisk: max(0, p.EphemeralStorage.SizeInGiB-20),
		}
	}
	return awscost.Quantities{}
}
