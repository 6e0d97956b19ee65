package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
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

// newGPUStack describes the GPUs of a stage. They are a separate stack that can be created and
// deleted without the service. It refers to the resources of the service's stack by name, because
// an export that another stack imports cannot be changed.
func newGPUStack(app awscdk.App, of *stack) *gpuStack {
	o := of.options
	// The names of the GPUs' workers are used here, even if other workers take the jobs now.
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
	}}
	if of.GPU.On {
		// The preview workers are removed only after these start.
		of.AddStackDependency(s.Stack, jsii.String("the workers on GPUs take its jobs"))
	} else {
		s.AddStackDependency(of.Stack, jsii.String("its workers take jobs from the service's queues"))
	}
	awscdk.Tags_Of(s.Stack).Add(jsii.String("service"), jsii.String("cutroom"), nil)
	awscdk.Tags_Of(s.Stack).Add(jsii.String("stage"), jsii.String(o.Stage), nil)

	s.findRecords()
	s.where = s.newGPUCluster()
	s.capacity = s.newGPUCapacity()
	if s.signs(true) {
		s.signer = s.newSigner()
	}
	images := s.newGPUImages()
	task := s.newGPUTask(images)
	s.service = s.newGPUService(task)
	s.tryGPUImages(images, task.TaskRole())
	s.output("GpuCluster", "Cluster of the workers on GPUs", s.where.cluster.ClusterName())
	if s.GPU.weightsInS3() {
		s.output("Weights", "URL from which the engine servers read weights", jsii.String(s.weightsURL()))
	}
	return s
}

// findRecords looks up by name the resources of the service's stack that workers use.
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
