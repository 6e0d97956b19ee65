package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2/awscodedeploy"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsecs"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/interfaces/interfacesawscloudwatch"
	"github.com/aws/jsii-runtime-go"
)

// called returns the function that an API calls or, with rollout=canary, an alias. newRollouts moves the alias.
func (s *stack) called(name string) awslambda.IFunction {
	if !s.Canary {
		return s.functions[name]
	}
	if s.aliases[name] == nil {
		s.aliases[name] = awslambda.NewAlias(s.Stack, jsii.String(title(name)+"Alias"), &awslambda.AliasProps{
			AliasName: jsii.String(stageName), Version: s.functions[name].CurrentVersion(),
		})
	}
	return s.aliases[name]
}

// newRollouts lets CodeDeploy move the aliases to new versions: a tenth of the calls at first, and all calls ten minutes
// later. If the alarm on its API's errors fires, CodeDeploy moves them back and CloudFormation rolls the deployment back.
func (s *stack) newRollouts() {
	if !s.Canary {
		return
	}
	application := awscodedeploy.NewLambdaApplication(s.Stack, jsii.String("Rollout"),
		&awscodedeploy.LambdaApplicationProps{ApplicationName: jsii.String(s.prefix())})
	role := awsiam.NewRole(s.Stack, jsii.String("RolloutRole"), &awsiam.RoleProps{
		AssumedBy: awsiam.NewServicePrincipal(jsii.String("codedeploy.amazonaws.com"), nil),
	})
	for _, name := range sortedKeys(s.aliases) {
		// An upstream that is down must not roll back the media service.
		alarm := "media-errors"
		if name == "inference" {
			alarm = "inference-errors"
		}
		awscodedeploy.NewLambdaDeploymentGroup(s.Stack, jsii.String(title(name)+"Rollout"), &awscodedeploy.LambdaDeploymentGroupProps{
			Application: application, Role: role, Alias: s.aliases[name],
			DeploymentConfig: awscodedeploy.LambdaDeploymentConfig_CANARY_10PERCENT_10MINUTES(),
			Alarms:           &[]interfacesawscloudwatch.IAlarmRef{s.alarms[alarm]},
		})
	}
	suppress(role, "AwsSolutions-IAM4", "CodeDeploy requires this managed policy to move aliases.",
		"Policy::arn:<AWS::Partition>:iam::aws:policy/service-role/AWSCodeDeployRoleForLambdaLimited")
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
