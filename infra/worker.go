package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2/awsecs"
	"github.com/aws/jsii-runtime-go"
)

// jobsOfWorker is the number of concurrent jobs per lane on a worker: half its number of vCPUs.
const jobsOfWorker = 1

func (o options) hasWorker() bool { return o.Worker != "none" }

// workerCluster, workerService and workersMax describe the workers that are in use, with engine
// servers or with the preview engine.
func (o options) workerCluster() string {
	if o.GPU.On {
		return o.name("gpu")
	}
	return o.prefix()
}

func (o options) workerService() string {
	if o.GPU.On {
		return o.name("gpu-worker")
	}
	return o.name("worker")
}

func (o options) workersMax() int {
	if o.GPU.On {
		return o.GPU.Max
	}
	return o.WorkerMax
}

// newWorker runs the workers with the preview engine. At first no worker runs. The wake function starts a worker when
// work arrives, and then the scale function sets the number of workers. They sign results only if the options say so.
func (s *stack) newWorker() {
	if !s.hasWorker() || s.GPU.On {
		return
	}
	if s.signs(false) {
		s.signer = s.newSigner()
	}
	props := &awsecs.FargateServiceProps{
		MinHealthyPercent: jsii.Number(100), MaxHealthyPercent: jsii.Number(200),
		// Rebalancing would stop workers in the middle of their jobs.
		AvailabilityZoneRebalancing: awsecs.AvailabilityZoneRebalancing_DISABLED,
		DeploymentAlarms:            s.rollBackOn("dead-letters", "failed-executions"),
	}
	if s.WorkerSpot {
		s.newContainers().cluster.EnableFargateCapacityProviders()
		props.CapacityProviderStrategies = &[]*awsecs.CapacityProviderStrategy{
			{CapacityProvider: jsii.String("FARGATE_SPOT"), Weight: jsii.Number(1)},
		}
	}
	s.newService(container{
		name: "worker", program: "worker", image: s.WorkerImage,
		cpu: 2048, memory: 4096, disk: 40,
		environment: []string{
			"CUTROOM_JOBS_TABLE", "CUTROOM_USAGE_TABLE", "CUTROOM_BUCKET", "CUTROOM_VIDEO_QUEUE", "CUTROOM_IMAGE_QUEUE",
			"CUTROOM_C2PA", "CUTROOM_C2PA_SECRET_ARN", tracingVariable,
		},
		may: append(s.workJobs(), s.protectTasks()),
		// On SIGTERM, the worker hands its job back immediately.
		grace: 30,
		// The service does not specify a number of tasks, because every deployment would reset it while jobs are
		// running. By default, ECS starts a new service with one task.
	}, props)
}
