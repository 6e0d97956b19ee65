package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2/awsecs"
	"github.com/aws/jsii-runtime-go"
)

// jobsOfWorker is how many jobs of each lane a worker edits at once: half of its
// processors.
const jobsOfWorker = 1

// hasWorker says whether the deploy has workers, of whatever kind.
func (o options) hasWorker() bool { return o.Worker != "none" }

// workerCluster, workerService and workersMax are of the workers that take the
// jobs: those beside engine servers, or those with the preview engine.
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

// newWorker runs the workers with the preview engine, from none: the function wake
// raises the first when work arrives, and the function scale sets their number from
// then on.
func (s *stack) newWorker() {
	if !s.hasWorker() || s.GPU.On {
		return
	}
	s.newService(container{
		name: "worker", program: "worker", image: s.WorkerImage,
		cpu: 2048, memory: 4096, disk: 40,
		environment: []string{"CUTROOM_JOBS_TABLE", "CUTROOM_BUCKET", "CUTROOM_VIDEO_QUEUE", "CUTROOM_IMAGE_QUEUE"},
		may:         append(s.workJobs(), s.protectTasks()),
		// The worker hands its job back at once.
		grace: 30,
		// No number of tasks: it would put the service back to it with every
		// deploy, in the middle of jobs. ECS begins a service without one with 1.
	}, &awsecs.FargateServiceProps{
		MinHealthyPercent: jsii.Number(100), MaxHealthyPercent: jsii.Number(200),
		// It would end workers in the middle of their jobs to even the zones out.
		AvailabilityZoneRebalancing: awsecs.AvailabilityZoneRebalancing_DISABLED,
	})
}
