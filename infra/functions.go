package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsec2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/jsii-runtime-go"

	"cutroom/functions"
	"cutroom/shared/adapter/dynamo"
)

type function struct {
	functions.Function
	called string
	// memory is in MB. CPU time grows with it.
	memory  int
	timeout int
	// may lists the role's permissions, except for the permission to write its log.
	may []permission
	// private attaches the function to the VPC from the options, if one is set.
	private bool
}

const (
	// bufferedTimeout is API Gateway's default timeout for a buffered response, in seconds.
	bufferedTimeout = 29
	// streamTimeout is API Gateway's timeout for a streamed response, in seconds. It is also the
	// maximum run time of a function.
	streamTimeout = 900
	// waitTimeout is the timeout, in seconds, of the functions that wait for a job. The synchronous
	// video routes wait 270 s (docs/contract/jobs.md#synchronous-calls), and API Gateway closes a
	// stream that has been silent for 300 s.
	waitTimeout = 290
	// verifyMemory is the memory, in MB, of the function that verifies files. With this much memory, the function
	// gets more than one vCPU.
	verifyMemory = 2048
	// internalTimeout is the timeout of event-driven functions, in seconds.
	internalTimeout = 60
)

// loop allows the webhooks and steps functions to invoke themselves. Otherwise Lambda would stop them the sixteenth
// time in a row. The webhooks function waits for a later attempt by sending messages to its own queue. The code
// limits the attempts and the waits (webhook.MaxAttempts, webhook.LongestWait). The steps function continues batches,
// which have 24 hours each.
func (f function) loop() awslambda.RecursiveLoop {
	if f.Name == "webhooks" || f.Name == "steps" {
		return awslambda.RecursiveLoop_ALLOW
	}
	return awslambda.RecursiveLoop_TERMINATE
}

func (s *stack) describeFunctions() []function {
	callers := func(f function) function {
		f.may = append(f.may, s.authenticate()...)
		return f
	}
	deployed := map[string]function{
		"jobs":    callers(function{memory: 512, timeout: bufferedTimeout, may: append(s.submitJobs(), s.listJobs()...)}),
		"content": callers(function{memory: 512, timeout: streamTimeout, may: s.readContent()}),
		// The reader process gets its own vCPU, and 1 GiB in addition to this program's memory.
		"c2pa":      callers(function{memory: verifyMemory, timeout: bufferedTimeout, may: s.verifyFiles()}),
		"images":    callers(function{memory: 512, timeout: waitTimeout, may: append(s.submitJobs(), s.readSecret())}),
		"files":     callers(function{memory: 512, timeout: bufferedTimeout, may: s.keepFiles()}),
		"tokens":    callers(function{memory: 256, timeout: bufferedTimeout, may: s.keepKeys()}),
		"models":    {memory: 256, timeout: bufferedTimeout},
		"quota":     callers(function{memory: 256, timeout: bufferedTimeout, may: s.readSessions()}),
		"inference": callers(function{memory: 512, timeout: streamTimeout, may: s.meterInference(), private: true}),
		"batches":   callers(function{memory: 512, timeout: streamTimeout, may: s.keepBatches()}),
		"steps":     {memory: stepMemory, timeout: streamTimeout, may: s.makeSteps(), private: true},
		"reaper":    {memory: 256, timeout: internalTimeout, may: s.endJobs()},
		"arrived":   {memory: 256, timeout: internalTimeout, may: s.publishUploads()},
		"expiry":    {memory: 256, timeout: internalTimeout, may: s.deleteFiles()},
		"webhooks":  {memory: 256, timeout: internalTimeout, may: s.sendWebhooks(), private: len(s.WebhookAllow) > 0},
	}
	// The local AWS can test every function, even without workers.
	if s.hasWorker() || s.Endpoint != "" {
		deployed["wake"] = function{memory: 256, timeout: internalTimeout, may: s.setWorkers()}
		deployed["scale"] = function{memory: 256, timeout: internalTimeout, may: s.setWorkers()}
	}
	var described []function
	for _, f := range functions.All() {
		if d, ok := deployed[f.Name]; ok {
			d.Function = f
			described = append(described, d)
		}
	}
	return described
}

// environment returns all settings of functions and containers that the options require.
func (s *stack) environment() map[string]*string {
	values := map[string]*string{
		"CUTROOM_BUCKET":         s.bucketName(),
		"CUTROOM_STATE_MACHINE":  s.stateMachineARN(),
		"CUTROOM_VIDEO_QUEUE":    s.queueURL("video"),
		"CUTROOM_IMAGE_QUEUE":    s.queueURL("image"),
		"CUTROOM_WEBHOOK_QUEUE":  s.webhookQueueURL(),
		"CUTROOM_STEPS_FUNCTION": jsii.String(s.callable("steps")),
		"CUTROOM_SECRET_ARN":     s.secretName(),
		"CUTROOM_CORS_ORIGINS":   jsii.String(strings.Join(s.Origins, ",")),
		"CUTROOM_MAX_UPLOAD":     jsii.String(strconv.Itoa(s.MaxUpload)),
	}
	for name, table := range s.tables {
		values["CUTROOM_"+strings.ToUpper(name)+"_TABLE"] = table.TableName()
		if s.Endpoint != "" {
			values["CUTROOM_"+strings.ToUpper(name)+"_TABLE"] = jsii.String(dynamo.TableName(s.Stage, name))
		}
	}
	if s.hasWorker() {
		// CUTROOM_WORKERS is the number of jobs that a lane runs concurrently when all workers are running. A
		// submission that they could not complete in time is rejected.
		values["CUTROOM_WORKERS"] = jsii.String(strconv.Itoa(s.workersMax() * jobsOfWorker))
		values["CUTROOM_WAKE_FUNCTION"] = jsii.String(s.callable("wake"))
	}
	if s.hasWorker() || s.Endpoint != "" {
		values["CUTROOM_CLUSTER"] = jsii.String(s.workerCluster())
		values["CUTROOM_WORKER_SERVICE"] = jsii.String(s.workerService())
		maps.Copy(values, s.fleetRules())
	}
	if s.PublicEndpoint != "" {
		values["CUTROOM_PUBLIC_S3_URL"] = jsii.String(s.PublicEndpoint)
	}
	if allow := s.webhookAllow(); allow != nil {
		values["CUTROOM_WEBHOOK_ALLOW"] = allow
	}
	if s.Tracing {
		values[tracingVariable] = jsii.String("xray")
	}
	if s.GPU.On {
		values["CUTROOM_ENGINE"] = jsii.String(engineURL())
	}
	if s.mediaURL != nil {
		values["CUTROOM_PUBLIC_URL"] = s.mediaURL
	}
	if s.gatewayURL != nil {
		values["CUTROOM_PUBLIC_INFERENCE_URL"] = s.gatewayURL
	}
	if s.ContentRedirect {
		values["CUTROOM_CONTENT_REDIRECT"] = jsii.String("true")
	}
	s.Live.environment(values)
	maps.Copy(values, s.signing())
	return values
}

func (s *stack) queueURL(lane string) *string {
	if s.Endpoint != "" {
		return jsii.String(s.Endpoint + "/" + localAccount + "/" + s.name(lane))
	}
	return s.lanes[lane].queue.QueueUrl()
}

// variables returns the named settings together with the common settings. files is the folder that
// holds the setting files.
func (s *stack) variables(files string, names []string) *map[string]*string {
	variables := s.common(files)
	if len(names) == 0 {
		return &variables
	}
	all := s.environment()
	for _, name := range names {
		if value, ok := all[name]; ok {
			variables[name] = value
		}
	}
	return &variables
}

func (s *stack) common(files string) map[string]*string {
	variables := map[string]*string{
		"CUTROOM_STAGE":  jsii.String(s.Stage),
		"CUTROOM_FAMILY": jsii.String(s.Family),
	}
	if s.Catalog != "" {
		variables["CUTROOM_CATALOG"] = jsii.String(fmt.Sprintf(files, "catalog"))
	}
	if s.Tiers != "" {
		variables["CUTROOM_TIERS"] = jsii.String(fmt.Sprintf(files, "tiers"))
	}
	return variables
}

func (s *stack) newFunctions() map[string]awslambda.Function {
	made := map[string]awslambda.Function{}
	for _, f := range s.describeFunctions() {
		made[f.Name] = s.newFunction(f)
	}
	return made
}

func (s *stack) newFunction(f function) awslambda.Function {
	name := s.name(cmp.Or(f.called, f.Name))
	group := s.newLogGroup(title(f.Name)+"Logs", "/aws/lambda/"+name)
	role := awsiam.NewRole(s.Stack, jsii.String(title(f.Name)+"Role"), &awsiam.RoleProps{
		AssumedBy:   awsiam.NewServicePrincipal(jsii.String("lambda.amazonaws.com"), nil),
		Description: jsii.String("What the function " + f.Name + " of Cutroom may do"),
	})
	allow(role, append(f.may, permission{
		why:       "Lambda creates the streams of the log group and chooses their names.",
		actions:   []string{"logs:CreateLogStream", "logs:PutLogEvents"},
		resources: []*string{jsii.String(*group.LogGroupArn())},
	})...)
	props := &awslambda.FunctionProps{
		FunctionName:                 jsii.String(name),
		Runtime:                      awslambda.Runtime_PROVIDED_AL2023(),
		Architecture:                 s.built,
		Handler:                      jsii.String("bootstrap"),
		Code:                         awslambda.Code_FromAsset(jsii.String(filepath.Join(s.Functions, f.Name)), nil),
		MemorySize:                   jsii.Number(f.memory),
		Timeout:                      awscdk.Duration_Seconds(jsii.Number(f.timeout)),
		Environment:                  s.functionVariables(f),
		Role:                         role,
		LogGroup:                     group,
		RecursiveLoop:                f.loop(),
		ReservedConcurrentExecutions: s.reserved(f.Name),
		Tracing:                      s.functionTracing(),
	}
	if s.settings != nil {
		props.Layers = &[]awslambda.ILayerVersion{s.settings}
	}
	props.RetryAttempts, props.MaxEventAge = asynchronous(f.Name)
	if f.Name == "reaper" {
		props.DeadLetterQueue = s.lanes["video"].dead // the reaper reads it
	}
	if f.private && s.Network.set() {
		s.placePrivately(f.Name, props, role)
	}
	if s.Tracing {
		suppress(role, "AwsSolutions-IAM5", whyAnyTrace, "Resource::*")
	}
	return awslambda.NewFunction(s.Stack, jsii.String(title(f.Name)+"Function"), props)
}

// asynchronous returns the number of retries and the maximum age of a function's events, or nil for Lambda's defaults.
func asynchronous(function string) (retries *float64, age awscdk.Duration) {
	if function == "scale" || function == "steps" {
		// Their schedules start them again within minutes, so events that failed or were delayed are useless.
		return jsii.Number(0), awscdk.Duration_Minutes(jsii.Number(5))
	}
	return nil, nil
}

func (o options) architecture() awslambda.Architecture {
	if o.Arm64 {
		return awslambda.Architecture_ARM_64()
	}
	return awslambda.Architecture_X86_64()
}

func (s *stack) functionVariables(f function) *map[string]*string {
	variables := s.variables(functionFiles, f.Variables)
	if s.Endpoint != "" {
		(*variables)["AWS_ENDPOINT_URL"] = jsii.String(s.Endpoint)
	}
	if !s.Streaming {
		(*variables)["CUTROOM_RESPONSE"] = jsii.String("buffered")
	}
	return variables
}

// placePrivately attaches a function to the VPC from the options, so that it can reach private upstreams and webhook
// receivers. The VPC must also give access to DynamoDB, S3, SQS and Lambda, through endpoints or a NAT gateway.
func (s *stack) placePrivately(name string, props *awslambda.FunctionProps, role awsiam.Role) {
	role.AddManagedPolicy(
		awsiam.ManagedPolicy_FromAwsManagedPolicyName(jsii.String("service-role/AWSLambdaVPCAccessExecutionRole")))
	suppress(role, "AwsSolutions-IAM4", "Lambda requires this managed policy to attach a function to a VPC.",
		"Policy::arn:<AWS::Partition>:iam::aws:policy/service-role/AWSLambdaVPCAccessExecutionRole")
	vpc := awsec2.Vpc_FromVpcAttributes(s.Stack, jsii.String(title(name)+"Network"), &awsec2.VpcAttributes{
		VpcId: jsii.String(s.Network.VPC), AvailabilityZones: jsii.Strings(s.Network.Zones...),
		PrivateSubnetIds: jsii.Strings(s.Network.Subnets...),
	})
	var groups []awsec2.ISecurityGroup
	for i, id := range s.Network.SecurityGroups {
		groups = append(groups,
			awsec2.SecurityGroup_FromSecurityGroupId(s.Stack, jsii.String(fmt.Sprintf("%sSecurityGroup%d", title(name), i)),
				jsii.String(id), nil))
	}
	props.Vpc, props.SecurityGroups = vpc, &groups
	props.VpcSubnets = &awsec2.SubnetSelection{SubnetType: awsec2.SubnetType_PRIVATE_WITH_EGRESS}
}

func (s *stack) newLogGroup(id, name string) awslogs.LogGroup {
	s.logs[name] = awslogs.NewLogGroup(s.Stack, jsii.String(id), &awslogs.LogGroupProps{
		LogGroupName: jsii.String(name), RemovalPolicy: awscdk.RemovalPolicy_DESTROY,
	})
	// CDK's own property takes only constants.
	s.logs[name].Node().DefaultChild().(awslogs.CfnLogGroup).SetRetentionInDays(jsii.Number(s.LogDays))
	return s.logs[name]
}

// buildFunctions builds the functions, unless the option functions names a folder with built functions. Commands that
// deploy no code, such as `cdk ls` and `cdk destroy`, get the folders of the sources instead.
func (s *stack) buildFunctions() error {
	if s.Functions != "" {
		return s.allBuilt()
	}
	if !*s.BundlingRequired() {
		s.Functions = "functions"
		return nil
	}
	architecture := "x86_64"
	if s.Arm64 {
		architecture = "arm64"
	}
	s.Functions = filepath.Join("bin/functions", architecture)
	build := exec.Command("scripts/build-functions.sh", architecture, s.Functions)
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("build the functions: %w", err)
	}
	return nil
}

// allBuilt returns an error if a function has not been built, because CDK's own error would not say what to do.
func (o options) allBuilt() error {
	var missing []string
	for _, name := range functions.Names() {
		if _, err := os.Stat(filepath.Join(o.Functions, name, "bootstrap")); errors.Is(err, os.ErrNotExist) {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("functions=%s has no %s: build them with scripts/build-functions.sh", o.Functions,
			strings.Join(missing, ", "))
	}
	return nil
}
