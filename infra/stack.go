package main

import (
	"cmp"
	"os"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/aws-cdk-go/awscdk/v2/awss3"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssecretsmanager"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsstepfunctions"
	"github.com/aws/jsii-runtime-go"
)

type stack struct {
	awscdk.Stack
	options

	tables   map[string]awsdynamodb.ITableV2
	lanes    map[string]lane
	webhooks lane
	secret   awssecretsmanager.Secret
	// signer is the secret with the stack's signing identity, or nil if its workers do not sign.
	signer       awssecretsmanager.Secret
	settings     awslambda.LayerVersion
	stateMachine awsstepfunctions.CfnStateMachine
	functions    map[string]awslambda.Function
	built        awslambda.Architecture
	bucket       awss3.Bucket
	// mediaURL is the URL of the media API for the page for trying sessions. It may be nil.
	mediaURL *string
	// gatewayURL is the inference gateway's URL. It is nil until the gateway's API has been created.
	gatewayURL *string
	cluster    *containers
	// balancers maps names of container services to their balancers. logs holds log groups by name.
	balancers map[string]balancing
	logs      map[string]awslogs.LogGroup
	aliases   map[string]awslambda.Alias
	alarms    map[string]awscloudwatch.Alarm
}

func newStack(app awscdk.App, o options) (*stack, error) {
	s := &stack{
		Stack: awscdk.NewStack(app, jsii.String("Cutroom-"+o.Stage), &awscdk.StackProps{
			StackName:             jsii.String(o.prefix()),
			Description:           jsii.String("Cutroom: media editing service and inference gateway, stage " + o.Stage),
			TerminationProtection: jsii.Bool(o.Protected),
			Env:                   o.target(),
		}),
		options: o, built: o.architecture(), balancers: map[string]balancing{}, logs: map[string]awslogs.LogGroup{},
		aliases: map[string]awslambda.Alias{}, alarms: map[string]awscloudwatch.Alarm{},
	}
	s.tag()
	s.limitRoles()

	s.tables = s.newTables()
	if s.DataAlone {
		s.newSecret()
		s.newBucket(nil)
		return s, nil
	}
	if err := s.buildFunctions(); err != nil {
		return nil, err
	}
	s.lanes = s.newLanes()
	s.webhooks = s.newWebhookQueue()
	s.secret = s.newSecret()
	var err error
	if s.stateMachine, err = s.newStateMachine(); err != nil {
		return nil, err
	}
	if s.settings, err = s.newSettings(); err != nil {
		return nil, err
	}
	s.functions = s.newFunctions()
	s.bucket = s.newBucket(s.called("arrived"))
	s.newWorker()
	s.newReactions()
	s.newScaling()
	s.newWebhooks()

	logging := s.newAPILogging()
	media := s.newMediaAPI(logging)
	inference := s.newInferenceAPI(logging)
	s.setGatewayURL(inference)
	s.newSamplingRules()
	s.newRealtime(media)
	s.newIngest()
	if err := s.newConsole(media, inference); err != nil {
		return nil, err
	}
	if s.Watch {
		s.newAlarms(inference)
	}
	s.newRollouts()
	s.newBudget()
	s.newOutputs(media, inference)
	return s, nil
}

// limitRoles applies the permissions boundary from the options, if one is set, to all roles.
func (s *stack) limitRoles() {
	if s.Boundary != "" {
		awsiam.PermissionsBoundary_Of(s.Stack).Apply(
			awsiam.ManagedPolicy_FromManagedPolicyName(s.Stack, jsii.String("Boundary"), jsii.String(s.Boundary)))
	}
}

func (s *stack) tag() {
	tags := awscdk.Tags_Of(s.Stack)
	tags.Add(jsii.String("service"), jsii.String("cutroom"), nil)
	tags.Add(jsii.String("stage"), jsii.String(s.Stage), nil)
	for name, value := range s.OwnTags {
		tags.Add(jsii.String(name), jsii.String(value), nil)
	}
}

const localAccount = "000000000000"

// target returns the account and region of the deployment. It returns nil for AWS, where the deployer's credentials
// determine them. In a local AWS, all names are literal, because it does not resolve references.
func (o options) target() *awscdk.Environment {
	if o.Endpoint == "" {
		return nil
	}
	region := cmp.Or(os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"), "us-east-1")
	return &awscdk.Environment{Account: jsii.String(localAccount), Region: jsii.String(region)}
}

// title returns the construct id for a name such as "media-logs".
func title(name string) string {
	var b strings.Builder
	for word := range strings.SplitSeq(name, "-") {
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String()
}
