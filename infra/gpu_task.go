package main

import (
	"maps"
	"strconv"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsec2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsecrassets"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsecs"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/jsii-runtime-go"
)

const (
	// enginePort is the engine server's port on the task's own loopback interface.
	enginePort = 8090
	// Both images declare these folders, and the images' user owns them.
	scratchFolder = "/scratch"
	weightsFolder = "/weights"
	// modelsFolder is the folder into which weights are copied from S3.
	modelsFolder = weightsFolder + "/models"
	// copyTime is the maximum time, in seconds, to copy weights. 100 GB at 100 MB/s take 1000 seconds.
	copyTime = 1800
	// stopTime is the time, in seconds, that a container may take to stop. It is the time from a spot instance's
	// notice to its termination. A worker needs less, because it hands its job back as soon as it gets the stop
	// signal.
	stopTime = 120
	// engineStart is the maximum time, in seconds, until the engine server is healthy. It loads
	// weights only when a job needs them.
	engineStart = 600
)

// newGPUTask creates the task: a worker and its engine server, with a GPU and a shared disk. Its
// roles have the permissions of a worker and may read weights.
func (s *gpuStack) newGPUTask() awsecs.Ec2TaskDefinition {
	role := awsiam.NewRole(s.Stack, jsii.String("TaskRole"), &awsiam.RoleProps{
		AssumedBy:   awsiam.NewServicePrincipal(jsii.String("ecs-tasks.amazonaws.com"), nil),
		Description: jsii.String("What the workers and engine servers of Cutroom may do"),
	})
	allow(role, append(append(s.workJobs(), s.readWeights()...), s.protectTasks())...)
	task := awsecs.NewEc2TaskDefinition(s.Stack, jsii.String("Task"), &awsecs.Ec2TaskDefinitionProps{
		Family: jsii.String(s.workerService()), NetworkMode: awsecs.NetworkMode_AWS_VPC, TaskRole: role,
		Volumes: &[]*awsecs.Volume{
			// Docker deletes this volume with the task.
			{Name: jsii.String("scratch"), DockerVolumeConfiguration: &awsecs.DockerVolumeConfiguration{
				Driver: jsii.String("local"), Scope: awsecs.Scope_TASK,
			}},
			// This volume stays on the instance's fastest disk for the next task.
			{Name: jsii.String("instance-weights"), DockerVolumeConfiguration: &awsecs.DockerVolumeConfiguration{
				Driver: jsii.String("local"), Scope: awsecs.Scope_SHARED, Autoprovision: jsii.Bool(true),
				DriverOpts: &map[string]*string{
					"type": jsii.String("none"), "o": jsii.String("bind"), "device": jsii.String(hostWeights),
				},
			}},
		},
	})
	image := s.engineImage()
	engine := s.addEngine(task, image)
	if s.GPU.weightsInS3() {
		engine.AddContainerDependencies(&awsecs.ContainerDependency{
			Container: s.addWeights(task, image), Condition: awsecs.ContainerDependencyCondition_SUCCESS,
		})
	}
	worker := s.addGPUWorker(task)
	// ECS stops the worker first, so its job is handed back while the engine is still running.
	worker.AddContainerDependencies(
		&awsecs.ContainerDependency{Container: engine, Condition: awsecs.ContainerDependencyCondition_HEALTHY})
	suppress(task, "AwsSolutions-ECS2", whyPlainVariables)
	suppress(task, "AwsSolutions-IAM5", whyAnyLogin, "Resource::*")
	return task
}

func engineHealth() *awsecs.HealthCheck {
	return &awsecs.HealthCheck{
		Command: jsii.Strings("CMD", "/opt/engine/bin/python", "-c",
			"import urllib.request as r; r.urlopen('http://127.0.0.1:"+strconv.Itoa(enginePort)+"/healthz', timeout=4)"),
		Interval: seconds(15), Timeout: seconds(5), Retries: jsii.Number(4), StartPeriod: seconds(300),
	}
}

// addWeights adds the container that copies weights from S3 to the instance's disk before the engine server starts.
// Unchanged files are kept. The tasks on an instance copy one after the other. If the copy fails, the task stops.
func (s *gpuStack) addWeights(task awsecs.Ec2TaskDefinition, image awsecs.ContainerImage) awsecs.ContainerDefinition {
	source := ":s3:" + strings.TrimPrefix(s.weightsURL(), "s3://") + "/"
	weights := task.AddContainer(jsii.String("weights"), &awsecs.ContainerDefinitionOptions{
		Image: image, Essential: jsii.Bool(false), MemoryReservationMiB: jsii.Number(512),
		EntryPoint: jsii.Strings("flock", weightsFolder+"/.lock"),
		Command:    jsii.Strings("rclone", "sync", "--transfers", "8", source, modelsFolder),
		Environment: s.located(map[string]*string{
			"RCLONE_S3_PROVIDER": jsii.String("AWS"), "RCLONE_S3_ENV_AUTH": jsii.String("true"), "RCLONE_S3_REGION": s.Region(),
		}),
		StartTimeout: seconds(copyTime), Logging: s.logsOf("weights"),
	})
	weights.AddMountPoints(mountOf("instance-weights", weightsFolder))
	return weights
}

func (s *gpuStack) addEngine(task awsecs.Ec2TaskDefinition, image awsecs.ContainerImage) awsecs.ContainerDefinition {
	variables := map[string]*string{
		"CUTROOM_FAMILY":         jsii.String(s.Family),
		"CUTROOM_ENGINE_ADDR":    jsii.String("127.0.0.1:" + strconv.Itoa(enginePort)),
		"CUTROOM_ENGINE_SCRATCH": jsii.String(scratchFolder),
	}
	if s.GPU.weightsInS3() {
		variables["CUTROOM_ENGINE_WEIGHTS_SOURCE"] = jsii.String(modelsFolder)
	}
	engine := task.AddContainer(jsii.String("engine"), &awsecs.ContainerDefinitionOptions{
		Image: image, GpuCount: jsii.Number(1),
		// The number of GPUs already limits the tasks on an instance. The engine may use all of the
		// instance's memory, because weights pass through memory when they are loaded.
		MemoryReservationMiB: jsii.Number(8192),
		Environment:          s.located(variables),
		HealthCheck:          engineHealth(),
		StartTimeout:         seconds(engineStart), StopTimeout: seconds(stopTime),
		// A crash loses the run but not the task, because the worker waits until the server has restarted.
		EnableRestartPolicy: jsii.Bool(true), RestartAttemptPeriod: seconds(60),
		Logging: s.logsOf("engine"),
	})
	engine.AddMountPoints(mountOf("scratch", scratchFolder), mountOf("instance-weights", weightsFolder))
	return engine
}

func (s *gpuStack) workerVariables() map[string]*string {
	variables := s.common(containerFiles)
	variables["CUTROOM_JOBS_TABLE"], variables["CUTROOM_BUCKET"] = s.tables["jobs"].TableName(), s.bucketName()
	variables["CUTROOM_USAGE_TABLE"] = s.tables["usage"].TableName()
	variables["CUTROOM_VIDEO_QUEUE"], variables["CUTROOM_IMAGE_QUEUE"] = s.queueURL("video"), s.queueURL("image")
	variables["CUTROOM_ENGINE"] = jsii.String(engineURL())
	variables["CUTROOM_SCRATCH"] = jsii.String(scratchFolder)
	if s.Tracing {
		variables[tracingVariable] = jsii.String("xray")
	}
	maps.Copy(variables, s.signing())
	return variables
}

func (s *gpuStack) addGPUWorker(task awsecs.Ec2TaskDefinition) awsecs.ContainerDefinition {
	worker := task.AddContainer(jsii.String("worker"), &awsecs.ContainerDefinitionOptions{
		// The worker writes only to the volume that it shares with the engine.
		ReadonlyRootFilesystem: jsii.Bool(true),
		Image:                  s.imageOf(container{name: "worker", program: "worker", image: s.WorkerImage}),
		MemoryReservationMiB:   jsii.Number(1024),
		Environment:            s.located(s.workerVariables()),
		HealthCheck: &awsecs.HealthCheck{
			Command:  jsii.Strings("CMD", "/usr/local/bin/program", "-health"),
			Interval: seconds(15), Timeout: seconds(5), Retries: jsii.Number(4), StartPeriod: seconds(60),
		},
		StopTimeout: seconds(stopTime),
		Logging:     s.logsOf("worker"),
	})
	worker.AddMountPoints(mountOf("scratch", scratchFolder))
	return worker
}

func seconds(n int) awscdk.Duration { return awscdk.Duration_Seconds(jsii.Number(n)) }

// located adds the region to a container's variables, because on EC2 instances ECS does not set it.
func (s *gpuStack) located(variables map[string]*string) *map[string]*string {
	variables["AWS_REGION"] = s.Region()
	return &variables
}

func (s *gpuStack) logsOf(container string) awsecs.LogDriver {
	group, ok := s.logs[s.gpuLogGroup(container)]
	if !ok {
		group = s.newLogGroup(title(container)+"Logs", s.gpuLogGroup(container))
	}
	return awsecs.LogDriver_AwsLogs(&awsecs.AwsLogDriverProps{
		StreamPrefix: jsii.String(container), LogGroup: group, Mode: awsecs.AwsLogDriverMode_NON_BLOCKING,
	})
}

func (s *gpuStack) gpuLogGroup(container string) string { return s.logGroup("gpu-" + container) }

// engineImage returns the engine server's image, built with the model map from the options.
func (s *gpuStack) engineImage() awsecs.ContainerImage {
	if s.GPU.EngineImage != "" {
		return s.imageOf(container{name: "engine", image: s.GPU.EngineImage})
	}
	arguments := map[string]*string{}
	models := "gpu/models.yaml"
	if s.GPU.Models != "" {
		models = s.GPU.Models
		arguments["MODELS"] = jsii.String(models)
	}
	// Include only the image's files, so that other changes do not rebuild it.
	exclude := []string{"*", "!gpu/Dockerfile", "!gpu/requirements.txt", "!gpu/pyproject.toml",
		"!gpu/cutroom_engine/*.py", "!" + models}
	return awsecs.ContainerImage_FromAsset(jsii.String(s.Root), &awsecs.AssetImageProps{
		File: jsii.String("gpu/Dockerfile"), BuildArgs: &arguments, Platform: awsecrassets.Platform_LINUX_AMD64(),
		IgnoreMode: awscdk.IgnoreMode_DOCKER, Exclude: jsii.Strings(exclude...),
	})
}

// newGPUService runs the tasks. GPUs are scarce, so a deployment does not start a second task in
// parallel. It stops the old task between two jobs and then starts its successor.
func (s *gpuStack) newGPUService(task awsecs.Ec2TaskDefinition) awsecs.Ec2Service {
	service := awsecs.NewEc2Service(s.Stack, jsii.String("Service"), &awsecs.Ec2ServiceProps{
		ServiceName: jsii.String(s.workerService()), Cluster: s.where.cluster, TaskDefinition: task,
		CapacityProviderStrategies: &[]*awsecs.CapacityProviderStrategy{
			{CapacityProvider: s.capacity.CapacityProviderName(), Weight: jsii.Number(1)},
		},
		VpcSubnets: privateSubnets(),
		SecurityGroups: &[]awsec2.ISecurityGroup{
			s.newGPUSecurityGroup("TaskSecurityGroup", "Workers and engine servers of Cutroom"),
		},
		MinHealthyPercent: jsii.Number(0), MaxHealthyPercent: jsii.Number(100),
		// Moving tasks between zones would need more concurrent tasks than allowed.
		AvailabilityZoneRebalancing: awsecs.AvailabilityZoneRebalancing_DISABLED,
		// Instances with several GPUs are filled first, so that other instances can be stopped.
		PlacementStrategies: &[]awsecs.PlacementStrategy{awsecs.PlacementStrategy_PackedByMemory()},
		CircuitBreaker:      &awsecs.DeploymentCircuitBreaker{Rollback: jsii.Bool(true)},
		DeploymentAlarms:    s.rollBackOn("dead-letters", "failed-executions"),
		PropagateTags:       awsecs.PropagatedTagSource_SERVICE,
	})
	// The service depends on an association, a child resource of the cluster that gives the cluster its capacity
	// provider. ECS rejects the service without the association, and the association cannot be deleted while a
	// service uses it.
	service.Node().AddDependency(s.where.cluster)
	return service
}

func engineURL() string { return "http://127.0.0.1:" + strconv.Itoa(enginePort) }
