package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsstepfunctions"
	"github.com/aws/jsii-runtime-go"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/adapter/stepfn"
)

// newStateMachine creates the state machine whose executions run the jobs.
func (s *stack) newStateMachine() (awsstepfunctions.CfnStateMachine, error) {
	definition, err := stepfn.Definition(*s.Partition(), dynamo.TableName(s.Stage, "jobs"))
	if err != nil {
		return nil, err
	}
	role := awsiam.NewRole(s.Stack, jsii.String("StateMachineRole"), &awsiam.RoleProps{
		AssumedBy: awsiam.NewServicePrincipal(jsii.String("states.amazonaws.com"), nil),
	})
	allow(role, append(s.traceExecutions(), s.onQueues(queueARN, "SendMessage"), s.onTable("jobs", "UpdateItem"))...)
	machine := awsstepfunctions.NewCfnStateMachine(s.Stack, jsii.String("Jobs"), &awsstepfunctions.CfnStateMachineProps{
		StateMachineName: jsii.String(s.name("jobs")),
		StateMachineType: jsii.String("STANDARD"),
		RoleArn:          role.RoleArn(),
		DefinitionString: jsii.String(definition),
	})
	if s.Tracing {
		machine.SetTracingConfiguration(
			&awsstepfunctions.CfnStateMachine_TracingConfigurationProperty{Enabled: jsii.Bool(true)})
	}
	// Create the role's permissions first, because Step Functions checks them when it creates the state machine.
	machine.Node().AddDependency(role)
	suppress(machine, "AwsSolutions-SF1", "Logging every event would cost more than the executions, and would repeat "+
		"what the job's record and the functions' logs contain.")
	suppress(machine, "AwsSolutions-SF2", "Tracing is billed by the trace, and is an option (tracing=on).")
	return machine, nil
}
