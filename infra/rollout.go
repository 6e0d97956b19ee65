package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscodedeploy"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsecs"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/interfaces/interfacesawscloudwatch"
	"github.com/aws/jsii-runtime-go"
)

// callable returns the name by which other functions call a function: its own or, with rollout=canary, its alias's. It is
// literal, because a function cannot refer to itself.
func (o options) callable(name string) string {
	if o.Canary {
		return o.name(name) + ":" + stageName
	}
	return o.name(name)
}

// called returns the function that an API or an event calls or, with rollout=canary, an alias. newRollouts moves the alias.
func (s *stack) called(name string) awslambda.IFunction {
	if !s.Canary {
		return s.functions[name]
	}
	if s.aliases[name] == nil {
		retries, age := asynchronous(name)
		s.aliases[name] = awslambda.NewAlias(s.Stack, jsii.String(title(name)+"Alias"), &awslambda.AliasProps{
			AliasName: jsii.String(stageName), Version: s.functions[name].CurrentVersion(), RetryAttempts: retries, MaxEventAge: age,
		})
	}
	return s.aliases[name]
}

// newRollouts lets CodeDeploy move the aliases to new versions: a part of the calls at first, and all calls ten minutes
// later. If the alarm on its errors fires, CodeDeploy moves them back and CloudFormation rolls the deployment back.
func (s *stack) newRollouts() {
	if !s.Canary {
		return
	}
	application := awscodedeploy.NewLambdaApplication(s.Stack, jsii.String("Rollout"),
		&awscodedeploy.LambdaApplicationProps{ApplicationName: jsii.String(s.prefix())})
	role := awsiam.NewRole(s.Stack, jsii.String("RolloutRole"), &awsiam.RoleProps{
		AssumedBy: awsiam.NewServicePrincipal(jsii.String("codedeploy.amazonaws.com"), nil),
	})
	// With a tenth of the events, too few would reach a broken version within ten minutes.
	mostEvents := awscodedeploy.NewLambdaDeploymentConfig(s.Stack, jsii.String("RolloutOfEvents"), &awscodedeploy.LambdaDeploymentConfigProps{
		TrafficRouting: awscodedeploy.NewTimeBasedCanaryTrafficRouting(&awscodedeploy.TimeBasedCanaryTrafficRoutingProps{
			Percentage: jsii.Number(90), Interval: awscdk.Duration_Minutes(jsii.Number(10)),
		}),
	})
	s.moveEventSources()
	for _, name := range sortedKeys(s.aliases) {
		// An upstream that is down must not roll back the media service.
		alarm := "media-errors"
		if name == "inference" {
			alarm = "inference-errors"
		}
		config := awscodedeploy.LambdaDeploymentConfig_CANARY_10PERCENT_10MINUTES()
		if internalConcurrency[name] > 0 {
			alarm, config = "internal-errors", mostEvents
		}
		if s.Forced {
			config = awscodedeploy.LambdaDeploymentConfig_ALL_AT_ONCE()
		}
		awscodedeploy.NewLambdaDeploymentGroup(s.Stack, jsii.String(title(name)+"Rollout"), &awscodedeploy.LambdaDeploymentGroupProps{
			Application: application, Role: role, Alias: s.aliases[name],
			DeploymentConfig: config,
			Alarms:           &[]interfacesawscloudwatch.IAlarmRef{s.alarms[alarm]}, IgnoreAlarmConfiguration: jsii.Bool(s.Forced),
		})
	}
	suppress(role, "AwsSolutions-IAM4", "CodeDeploy requires this managed policy to move aliases.",
		"Policy::arn:<AWS::Partition>:iam::aws:policy/service-role/AWSCodeDeployRoleForLambdaLimited")
}

// moveEventSources makes the queues and streams of functions call their aliases. Their logical ids stay the same,
// so that they keep their position in the streams when the option changes.
func (s *stack) moveEventSources() {
	for _, name := range sortedKeys(s.functions) {
		for _, child := range *s.functions[name].Node().Children() {
			if mapping, ok := child.Node().DefaultChild().(awslambda.CfnEventSourceMapping); ok {
				mapping.SetFunctionName(s.called(name).FunctionArn())
			}
		}
	}
}

// rollBackOn makes ECS roll a deployment back if one of the alarms fires. The alarms are named and not referred to, because
// some of them refer to the service.
func (s *stack) rollBackOn(alarms ...string) *awsecs.DeploymentAlarmConfig {
	if !s.Watch {
		return nil
	}
	for i, alarm := range alarms {
		alarms[i] = s.name(alarm)
	}
	return &awsecs.DeploymentAlarmConfig{AlarmNames: jsii.Strings(alarms...), Behavior: awsecs.AlarmBehavior_ROLLBACK_ON_ALARM}
}
