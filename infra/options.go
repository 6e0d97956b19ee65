package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"

	"cutroom/shared/app/c2pa/signing"
)

// options holds the deployer's choices from the CDK context, such as `-c stage=prod`.
type options struct {
	// Stage distinguishes deployments in one account and is part of the name of every resource.
	// Protected stages keep their data when the stack is deleted.
	Stage     string
	Protected bool
	// Arm64 builds the functions and containers for Arm64. Otherwise they are built for x86-64.
	Arm64 bool
	// Streaming makes the functions content, images and inference stream their responses. If it is off, API Gateway
	// buffers the responses, for environments that cannot stream.
	Streaming bool
	// Functions is the folder of the built functions. If it is empty, they are built.
	Functions string
	// Root is the folder of the repository, from which images are built.
	Root string
	// Endpoint is the URL of a local AWS that the functions call, or empty for AWS itself.
	Endpoint string
	// PublicEndpoint is the URL at which clients reach the local AWS, if that is not Endpoint.
	PublicEndpoint string
	// Catalog and Tiers are files that replace the built-in files. If empty, the built-in files are used.
	Catalog, Tiers string
	Family         string
	// MaxUpload is the maximum size, in bytes, of a file in form data.
	MaxUpload int
	// ContentRedirect redirects clients of the content route to signed URLs.
	ContentRedirect bool
	// Concurrency is the account's maximum number of concurrent functions. Part of it is reserved
	// (concurrency.go). 0 reserves nothing.
	Concurrency int
	// KeepVersions is the number of days for which the bucket keeps deleted and replaced objects. 0 keeps none.
	KeepVersions int
	// OwnTags holds the deployer's tags for all resources.
	OwnTags map[string]string
	// Boundary is the name of the managed policy that limits all roles, or empty.
	Boundary string
	// SecretName is the last part of the name of the service's secret. A deployment of 0.1.0 keeps its secret only under
	// the old name, because CloudFormation replaces a renamed secret.
	SecretName string
	// DataAlone omits everything except tables, bucket and secret, so that they can be imported (docs/runbook.md).
	DataAlone bool

	workerOptions
	containerOptions
	addressOptions
	gatewayOptions
	watchOptions
}

type workerOptions struct {
	// Worker is the kind of worker: "preview", or "none" if other workers take the jobs.
	Worker string
	// WorkerImage is the worker's image. If it is empty, the image is built from the repository.
	WorkerImage string
	WorkerMax   int
	// WorkerSpot runs the workers on spare capacity of Fargate.
	WorkerSpot bool
	// C2PA selects whether workers sign results. Its values are the same as for CUTROOM_C2PA.
	C2PA string
	GPU  gpu
}

type containerOptions struct {
	// Realtime adds the container service for realtime sessions.
	Realtime      bool
	RealtimeImage string
	Live          live
	// Ingest selects the platform of the media API: "lambda", or "fargate", which accepts bodies of any allowed size.
	Ingest      string
	IngestImage string
	// IngestTasks and RealtimeTasks are the container counts of the two services.
	IngestTasks, RealtimeTasks int
	// ContainerNetwork is the VPC of the container services and its subnets, one in each of Zones. They are public, unless
	// Private is set. If it is empty, a new VPC with the address block NetworkCIDR is created.
	ContainerNetwork network
	NetworkCIDR      string
	// Private gives containers and load balancers no public addresses.
	Private bool
	Zones   zones
}

type addressOptions struct {
	Origins []string
	// WebhookAllow lists hosts and address blocks that webhooks may reach although they are not on
	// the public internet.
	WebhookAllow []string
	Console      bool
	// Media, Inference, RealtimeDomain and ConsoleDomain are optional custom domains.
	// CloudFront accepts only certificates in us-east-1.
	Media, Inference, RealtimeDomain, ConsoleDomain domain
	// APIEndpoints lists interface endpoints of API Gateway. If it is set, both APIs are private and respond only there.
	APIEndpoints []string
	// DefaultURLs keeps API Gateway's own URL of an API that has a custom domain.
	DefaultURLs bool
	// WebACL is the ARN of an AWS WAF web ACL that filters the calls of both APIs and of the load balancers.
	WebACL string
	// RequestsPerSecond and Burst are rate limits. Each applies to an entire API.
	RequestsPerSecond, Burst int
	// APILogRole creates the role with which API Gateway writes logs. The role is a setting of the
	// entire account and region.
	APILogRole bool
}

type gatewayOptions struct {
	// Network is the VPC from which the inference function reaches private upstreams. If it is
	// empty, the function uses the internet.
	Network network
	// UpstreamSecrets lists the ARNs of the secrets named by the catalog's upstreams. The inference
	// function may read them.
	UpstreamSecrets []string
}

type watchOptions struct {
	// Canary sends only a part of the calls to a function's new version at first. With Forced, a new version gets all
	// calls at once, even while an alarm fires.
	Canary, Forced bool
	// LogDays is the retention time of logs, in days.
	LogDays int
	// Watch creates the alarms.
	Watch   bool
	Tracing bool
	// AlarmEmail is the address to which alarms are sent. AlarmTopic is an existing SNS topic that receives them instead.
	AlarmEmail, AlarmTopic string
	// Budget is a number of dollars. Forecasts of a higher bill of the account for a month are sent like alarms.
	Budget int
}

type domain struct{ Name, Certificate string }

func (d domain) set() bool { return d.Name != "" }

type network struct {
	VPC            string
	Zones, Subnets []string
	SecurityGroups []string
}

func (n network) set() bool { return n.VPC != "" }

func (o options) prefix() string { return "cutroom-" + o.Stage }

func (o options) name(what string) string { return o.prefix() + "-" + what }

// boundedName returns a resource name. The parameter `most` is its maximum length, in characters. A longer name is
// truncated and ends with a digest of the entire name, so that different names stay different.
func (o options) boundedName(what string, most int) string {
	name := o.name(what)
	if len(name) <= most {
		return name
	}
	digest := sha256.Sum256([]byte(name))
	const kept = 6
	return strings.TrimRight(name[:most-kept-1], "-") + "-" + hex.EncodeToString(digest[:])[:kept]
}

func contextOf(app awscdk.App) map[string]any {
	values, _ := app.Node().GetAllContext(nil).(map[string]any)
	return values
}

const defaultWorkerMax = 4

// logDays lists the retention times, in days, that CloudWatch Logs accepts.
var logDays = []int{1, 3, 5, 7, 14, 30, 60, 90, 180, 365, 731, 3653}

// readOptions reads the options from the context. Its error lists every invalid value.
func readOptions(values map[string]any) (options, error) {
	r := reader{values: values}
	o := options{
		Stage: r.pattern("stage", "dev", `^[a-z][a-z0-9-]{0,15}$`,
			"a lowercase letter, then up to 15 lowercase letters, digits and hyphens"),
		Arm64:           r.oneOf("arch", "arm64", "arm64", "x86_64") == "arm64",
		Streaming:       r.oneOf("streaming", "on", "on", "off") == "on",
		Root:            ".",
		Endpoint:        r.pattern("endpoint", "", `^https?://[^/]+$`, "a URL without a path"),
		PublicEndpoint:  r.pattern("publicEndpoint", "", `^https?://[^/]+$`, "a URL without a path"),
		Catalog:         r.file("catalog"),
		Tiers:           r.file("tiers"),
		Family:          r.pattern("family", "gen", `^[A-Za-z0-9-]{1,32}$`, "up to 32 letters, digits and hyphens"),
		MaxUpload:       r.number("maxUpload", 512<<20, 1, 5<<30),
		ContentRedirect: r.oneOf("contentRedirect", "false", "false", "true") == "true",
		KeepVersions:    r.number("keepVersions", 0, 1, 365),
		OwnTags:         r.tags(),
		Boundary:        r.pattern("boundary", "", `^[\w+=,.@-]{1,128}$`, "the name of a policy"),
		SecretName:      r.oneOf("secretName", "service-key", "service-key", "secret"),
		DataAlone:       r.oneOf("only", "", "data") == "data",
		Concurrency:     r.number("concurrency", 0, leastConcurrency, 100_000),
		workerOptions: workerOptions{
			Worker:      r.oneOf("worker", "preview", "preview", "none"),
			WorkerImage: r.text("workerImage"),
			WorkerMax:   r.number("workerMax", defaultWorkerMax, 1, 5000),
			WorkerSpot:  r.oneOf("workerSpot", "false", "false", "true") == "true",
			C2PA:        r.oneOf("c2pa", signing.Auto, signing.Auto, signing.On, signing.Off),
			GPU:         r.gpu(),
		},
		containerOptions: containerOptions{
			Realtime:      r.oneOf("realtime", "false", "false", "true") == "true",
			RealtimeImage: r.text("realtimeImage"),
			Live:          r.live(),
			Ingest:        r.oneOf("ingest", "lambda", "lambda", "fargate"),
			IngestImage:   r.text("ingestImage"),
			IngestTasks:   r.number("ingestTasks", 1, 1, 100),
			RealtimeTasks: r.number("realtimeTasks", 1, 1, 100),
			ContainerNetwork: network{
				VPC:     r.pattern("networkVpc", "", `^$|^vpc-`, "the id of a VPC"),
				Subnets: r.list("networkSubnets", ""),
			},
			NetworkCIDR: r.cidr("networkCidr"),
			Private:     r.oneOf("private", "false", "false", "true") == "true",
			Zones:       r.zones("networkZones", 2),
		},
		addressOptions: addressOptions{
			Origins:        r.list("origins", "*"),
			WebhookAllow:   r.list("webhookAllow", ""),
			Console:        r.oneOf("console", "false", "false", "true") == "true",
			Media:          r.domain("media"),
			Inference:      r.domain("inference"),
			RealtimeDomain: r.domain("realtime"),
			ConsoleDomain:  r.domain("console"),
			APIEndpoints:   r.list("apiEndpoints", ""),
			DefaultURLs:    r.oneOf("defaultUrls", "on", "on", "off") == "on",
			WebACL: r.pattern("webAcl", "", `^$|^arn:[a-z-]+:wafv2:[a-z0-9-]+:[0-9]+:regional/webacl/`,
				"the ARN of a regional web ACL"),
			RequestsPerSecond: r.number("requestsPerSecond", 1000, 1, 10000),
			Burst:             r.number("burst", 2000, 1, 5000),
			APILogRole:        r.oneOf("apiLogRole", "create", "create", "keep") == "create",
		},
		gatewayOptions: gatewayOptions{
			UpstreamSecrets: r.list("upstreamSecrets", ""),
			Network: network{
				VPC:            r.pattern("vpc", "", `^$|^vpc-`, "the id of a VPC"),
				Zones:          r.list("zones", ""),
				Subnets:        r.list("subnets", ""),
				SecurityGroups: r.list("securityGroups", ""),
			},
		},
		watchOptions: watchOptions{
			Canary:     r.oneOf("rollout", "direct", "direct", "canary", "force") != "direct",
			Forced:     r.text("rollout") == "force",
			LogDays:    r.number("logDays", 30, 1, 3653),
			Watch:      r.oneOf("watch", "on", "on", "off") == "on",
			Tracing:    r.oneOf("tracing", "off", "on", "off") == "on",
			AlarmEmail: r.pattern("alarmEmail", "", `^$|^[^@\s]+@[^@\s]+$`, "an e-mail address"),
			AlarmTopic: r.pattern("alarmTopic", "", `^$|^arn:[a-z-]+:sns:`, "the ARN of an SNS topic"),
			Budget:     r.number("budget", 0, 1, 10_000_000),
		},
	}
	r.dependent(&o)
	r.relations(o)
	r.liveRelations(o)
	r.unknown()
	if len(r.wrong) > 0 {
		return options{}, fmt.Errorf("invalid context:\n  %s", strings.Join(r.wrong, "\n  "))
	}
	return o, nil
}

// dependent reads the options whose defaults depend on other options.
func (r *reader) dependent(o *options) {
	protect := "false"
	if o.Stage == "prod" {
		protect = "true"
	}
	o.Protected = r.oneOf("protect", protect, "false", "true") == "true"
	o.Functions = r.text("functions")
}

func (r *reader) relations(o options) {
	if !slices.Contains(logDays, o.LogDays) {
		r.fail("logDays", "one of %v", logDays)
	}
	for _, arn := range o.UpstreamSecrets {
		if !regexp.MustCompile(`^arn:[a-z-]+:secretsmanager:`).MatchString(arn) {
			r.fail("upstreamSecrets", "ARNs of secrets, not %q", arn)
		}
	}
	own, containers, alarms := o.Network, o.ContainerNetwork, o.AlarmEmail+o.AlarmTopic
	r.reject(own.set() && (len(own.Subnets) == 0 || len(own.Subnets) != len(own.Zones) || len(own.SecurityGroups) == 0),
		"vpc", "requires subnets, zones (one for each subnet) and securityGroups")
	r.reject(!own.set() && len(own.Subnets)+len(own.Zones)+len(own.SecurityGroups) > 0, "vpc", "is required with subnets, zones or securityGroups")
	r.reject(containers.set() && (len(containers.Subnets) == 0 || len(containers.Subnets) != len(o.Zones.Names)),
		"networkVpc", "requires networkSubnets and the names of their zones in networkZones, one for each")
	r.reject(!containers.set() && len(containers.Subnets) > 0, "networkVpc", "is required with networkSubnets")
	r.reject(o.Private && !containers.set(), "private", "requires networkVpc, with private subnets")
	r.reject(o.Private && o.Live.On, "private", "allows no webrtc: clients send media to the tasks' public addresses")
	r.reject(len(o.APIEndpoints) > 0 && (o.Console || o.Inference.set() || o.Media.set() && o.Ingest != "fargate"),
		"apiEndpoints", "allows no console and no domains of the APIs")
	r.reject(!o.DefaultURLs && !o.Media.set() && !o.Inference.set(), "defaultUrls", "must not be off without a domain of an API")
	r.reject(o.Endpoint != "" && (o.Worker != "none" || o.GPU.made() || o.Realtime || o.Ingest != "lambda"),
		"endpoint", "allows no containers: it requires worker=none, gpu=false, realtime=false and ingest=lambda")
	r.reject(o.PublicEndpoint != "" && o.Endpoint == "", "publicEndpoint", "requires endpoint")
	r.reject(o.DataAlone && !o.Protected, "only", "requires protect=true: an unprotected stage leaves nothing behind")
	r.reject(o.GPU.made() && o.Worker == "none", "worker", "must not be none with gpu=prepare or gpu=true")
	r.reject(o.C2PA == signing.On && o.Worker == "none", "c2pa", "must not be on with worker=none: workers sign")
	// Reject this suffix, because the GPU stack's name is the stage's name with this suffix.
	r.reject(strings.HasSuffix(o.Stage, "-gpu"), "stage", "must not end in -gpu")
	r.reject(!o.Watch && alarms != "", "alarmEmail", "and alarmTopic require watch=on")
	r.reject(o.AlarmEmail != "" && o.AlarmTopic != "", "alarmTopic", "must not be set with alarmEmail")
	r.reject(o.Budget > 0 && alarms == "", "budget", "requires alarmEmail or alarmTopic")
	r.reject(o.Canary && !o.Watch, "rollout", "canary and force require watch=on")
	r.reject(o.WorkerSpot && o.Worker == "none", "workerSpot", "must not be true with worker=none")
	// Requests carry keys, so TLS is required. Unlike API Gateway, a load balancer has no default certificate.
	r.reject(o.Realtime && !o.RealtimeDomain.set(), "realtimeDomain", "and realtimeCertificate are required with realtime=true")
	r.reject(o.ConsoleDomain.set() && !o.Console, "consoleDomain", "requires console=true")
	r.reject(o.Ingest != "fargate" && o.IngestTasks > 1, "ingestTasks", "requires ingest=fargate")
	r.reject(!o.Realtime && o.RealtimeTasks > 1, "realtimeTasks", "requires realtime=true")
	r.reject(o.Ingest == "fargate" && !o.Media.set(), "mediaDomain", "and mediaCertificate are required with ingest=fargate")
}

type reader struct {
	values map[string]any
	known  []string
	wrong  []string
}

func (r *reader) fail(key, format string, args ...any) { r.conflict(key, "must be "+format, args...) }

func (r *reader) conflict(key, format string, args ...any) {
	r.wrong = append(r.wrong, key+" "+fmt.Sprintf(format, args...))
}

func (r *reader) reject(broken bool, key, says string) {
	if broken {
		r.conflict(key, "%s", says)
	}
}

func (r *reader) text(key string) string {
	r.known = append(r.known, key)
	switch value := r.values[key].(type) {
	case nil:
		return ""
	case string:
		return value
	default:
		// A context file may contain numbers and booleans.
		return fmt.Sprint(value)
	}
}

func (r *reader) pattern(key, otherwise, pattern, meaning string) string {
	value := r.text(key)
	if value == "" {
		return otherwise
	}
	if !regexp.MustCompile(pattern).MatchString(value) {
		r.fail(key, "%s, not %q", meaning, value)
	}
	return value
}

func (r *reader) cidr(key string) string {
	return r.pattern(key, "10.0.0.0/16", `^[0-9.]+/(1[6-9]|2[0-2])$`, "an address block such as 10.20.0.0/16, of /16 to /22")
}

func (r *reader) oneOf(key, otherwise string, allowed ...string) string {
	value := r.text(key)
	if value == "" {
		return otherwise
	}
	if !slices.Contains(allowed, value) {
		r.fail(key, "%s, not %q", strings.Join(allowed, " or "), value)
	}
	return value
}

func (r *reader) number(key string, otherwise, lowest, highest int) int {
	value := r.text(key)
	if value == "" {
		return otherwise
	}
	number, err := strconv.Atoi(value)
	if err != nil || number < lowest || number > highest {
		r.fail(key, "an integer from %d to %d, not %q", lowest, highest, value)
	}
	return number
}

func (r *reader) list(key, otherwise string) []string {
	value := r.text(key)
	if value == "" {
		value = otherwise
	}
	var items []string
	for item := range strings.SplitSeq(value, ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return items
}

func (r *reader) tags() map[string]string {
	tags := map[string]string{}
	for _, pair := range r.list("tags", "") {
		name, value, found := strings.Cut(pair, "=")
		if !found || name == "" || name == "service" || name == "stage" {
			r.fail("tags", "tags such as team=media other than service and stage, not %q", pair)
		}
		tags[name] = value
	}
	return tags
}

func (r *reader) file(key string) string {
	path := r.text(key)
	if path == "" {
		return ""
	}
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		r.fail(key, "an existing file, not %q", path)
	}
	if !filepath.IsLocal(path) {
		r.fail(key, "a path within the repository, not %q", path)
	}
	return path
}

func (r *reader) domain(of string) domain {
	d := domain{
		Name:        r.pattern(of+"Domain", "", `^([a-z0-9-]+\.)+[a-z]{2,}$`, "a domain name"),
		Certificate: r.pattern(of+"Certificate", "", `^arn:[a-z-]+:acm:`, "the ARN of a certificate"),
	}
	if (d.Name == "") != (d.Certificate == "") {
		r.conflict(of+"Domain", "and %sCertificate must be set together", of)
	}
	return d
}

// unknown rejects keys that are not options, because a misspelled option would otherwise be
// ignored. CDK's own keys contain a colon or a slash.
func (r *reader) unknown() {
	known := slices.Compact(slices.Sorted(slices.Values(r.known)))
	for _, key := range slices.Sorted(maps.Keys(r.values)) {
		if !strings.ContainsAny(key, ":/") && !slices.Contains(r.known, key) {
			r.wrong = append(r.wrong,
				fmt.Sprintf("unknown option %s: must be one of %s", key, strings.Join(known, ", ")))
		}
	}
}
