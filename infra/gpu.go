package main

import (
	"cmp"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsecs"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/jsii-runtime-go"

	"cutroom/shared/adapter/dynamo"
)

type gpuStack struct {
	*stack
	where    *containers
	capacity awsecs.AsgCapacityProvider
	service  awsecs.Ec2Service
}

// newGPUStack describes a stage's GPU workers. They are in a separate stack that can be created and
// deleted while the service stays. It refers to the service stack's resources by name, because
// CloudFormation does not allow changing an export that another stack imports.
func newGPUStack(app awscdk.App, of *stack) *gpuStack {
	o := of.options
	// Use the names of the GPU workers here, even while other workers take the jobs.
	o.GPU.On = true
	// GPU instances have x86-64 processors, even if the functions use Arm.
	o.Arm64 = false
	s := &gpuStack{stack: &stack{
		Stack: awscdk.NewStack(app, jsii.String("Cutroom-"+o.Stage+"-gpu"), &awscdk.StackProps{
			StackName:   jsii.String(o.name("gpu")),
			Description: jsii.String("Cutroom: engine servers on GPUs, stage " + o.Stage),
			Env:         o.target(),
		}),
		options: o, built: of.architecture(), logs: map[string]awslogs.LogGroup{},
		alarms: map[string]awscloudwatch.Alarm{},
	}}
	if of.GPU.On {
		// The preview workers are removed only after the GPU workers have started.
		of.AddStackDependency(s.Stack, jsii.String("the workers on GPUs take its jobs"))
	} else {
		s.AddStackDependency(of.Stack, jsii.String("its workers take jobs from the service's queues"))
	}
	s.tag()
	s.limitRoles()

	s.findRecords()
	s.where = s.newGPUCluster()
	s.capacity = s.newGPUCapacity()
	if s.signs(true) {
		s.signer = s.newSigner()
	}
	task := s.newGPUTask()
	s.service = s.newGPUService(task)
	if s.Watch && s.GPU.Prepared {
		// The topic is in the service's stack, so it has a fixed name.
		s.addAlarms(s.findTopic(cmp.Or(s.AlarmTopic, *s.arn("sns", s.name("alarms")))), s.forgottenGPU())
	}
	s.output("GpuCluster", "Cluster of the workers on GPUs", s.where.cluster.ClusterName())
	if s.GPU.weightsInS3() {
		s.output("Weights", "URL from which the engine servers read weights", jsii.String(s.weightsURL()))
	}
	return s
}

// findRecords looks up the service stack's resources that workers use, by name.
func (s *gpuStack) findRecords() {
	s.tables = map[string]awsdynamodb.ITableV2{}
	for _, name := range []string{"jobs", "usage"} {
		s.tables[name] = awsdynamodb.TableV2_FromTableName(s.Stack, jsii.String(title(name)+"Table"),
			jsii.String(dynamo.TableName(s.Stage, name)))
	}
	s.lanes = map[string]lane{}
	for _, name := range []string{"video", "image"} {
		s.lanes[name] = lane{
			queue: awssqs.Queue_FromQueueArn(s.Stack, jsii.String(title(name)+"Queue"), s.arn("sqs", s.name(name))),
		}
	}
}

func (s *gpuStack) newGPUCluster() *containers {
	vpc := s.newGPUNetwork()
	return &containers{vpc, awsecs.NewCluster(s.Stack, jsii.String("Cluster"), &awsecs.ClusterProps{
		ClusterName: jsii.String(s.workerCluster()), Vpc: vpc, ContainerInsightsV2: awsecs.ContainerInsights_ENABLED,
	})}
}
