package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2/awsecs"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/jsii-runtime-go"
)

const (
	// Resources of a task in which the engine server starts without a model: CPU in units of 1/1024
	// vCPU, memory in MiB, and disk in GiB for its image, packed and unpacked.
	gpuSmokeCPU, gpuSmokeMemory, gpuSmokeDisk = 2048, 8192, 60
)

// tryGPUImages tests the images of the GPU tasks before they reach the service. A GPU instance might have to be
// started first, so the test runs on Fargate: the engine server starts on the CPU without loading a model, and
// the worker checks that it responds. The GPU is first used by the first task on an instance.
func (s *gpuStack) tryGPUImages(images gpuImages, role awsiam.IRole) {
	if !s.Smoke {
		return
	}
	task := awsecs.NewFargateTaskDefinition(s.Stack, jsii.String("SmokeTask"), &awsecs.FargateTaskDefinitionProps{
		Family: jsii.String(s.name("gpu-smoke")), Cpu: jsii.Number(gpuSmokeCPU), MemoryLimitMiB: jsii.Number(gpuSmokeMemory),
		EphemeralStorageGiB: jsii.Number(gpuSmokeDisk), TaskRole: role,
		RuntimePlatform: &awsecs.RuntimePlatform{CpuArchitecture: awsecs.CpuArchitecture_X86_64(),
			OperatingSystemFamily: awsecs.OperatingSystemFamily_LINUX()},
		Volumes: &[]*awsecs.Volume{{Name: jsii.String("scratch")}, {Name: jsii.String("weights")}},
	})
	variables := s.engineVariables()
	variables["CUTROOM_ENGINE_DEVICE"] = jsii.String("cpu")
	engine := task.AddContainer(jsii.String("engine"), &awsecs.ContainerDefinitionOptions{
		Image: images.engine, Environment: s.located(variables), HealthCheck: engineHealth(),
		StartTimeout: seconds(engineStart), Logging: s.logsOf("engine"),
	})
	engine.AddMountPoints(mountOf("scratch", scratchFolder), mountOf("weights", weightsFolder))
	worker := task.AddContainer(jsii.String("worker"), &awsecs.ContainerDefinitionOptions{
		Image: images.worker, Environment: s.located(s.workerVariables()), ReadonlyRootFilesystem: jsii.Bool(true),
		Command: jsii.Strings("-smoke"), Logging: s.logsOf("worker"),
	})
	worker.AddMountPoints(mountOf("scratch", scratchFolder))
	worker.AddContainerDependencies(
		&awsecs.ContainerDependency{Container: engine, Condition: awsecs.ContainerDependencyCondition_HEALTHY})
	suppress(task, "AwsSolutions-ECS2", whyPlainVariables)
	suppress(task, "AwsSolutions-IAM5", whyAnyLogin, "Resource::*")
	s.service.Node().AddDependency(s.trySmoke(s.where, smokeTask{
		definition: task, container: "worker", logGroup: s.gpuLogGroup("worker"), function: "gpu-smoke",
		subnets: privateSubnets(),
		group:   s.newGPUSecurityGroup("SmokeSecurityGroup", "The smoke task of Cutroom"),
	}))
}
