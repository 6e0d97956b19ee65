package main

import (
	"strconv"

	"github.com/aws/jsii-runtime-go"
)

const (
	// workerBacklog is the number of jobs per worker above which another worker is started. A
	// worker can edit a video and an image at the same time.
	workerBacklog = 2 * jobsOfWorker
	// workerIdle is the time, in minutes, after which surplus workers are stopped.
	workerIdle = 10
)

// newScaling invokes the scale function every minute, even while idle. This costs a few cents a month, and finds work
// whose wake call was lost. No CloudWatch alarm changes the number of workers. Queue metrics lag by minutes, and an
// active alarm repeats its action, so alarms would stop workers that have just started.
func (s *stack) newScaling() {
	if s.functions["scale"] == nil {
		return
	}
	s.onSchedule("ScaleSchedule", "Sets the number of workers", "scale", 1)
}

func (s *stack) fleetRules() map[string]*string {
	least, most, backlog, idle := 0, s.WorkerMax, workerBacklog, workerIdle
	if s.GPU.On {
		least, most, backlog, idle = s.GPU.Min, s.GPU.Max, s.GPU.Backlog, s.GPU.Idle
	}
	number := func(n int) *string { return jsii.String(strconv.Itoa(n)) }
	return map[string]*string{
		"CUTROOM_WORKER_MIN": number(least), "CUTROOM_WORKER_MAX": number(most),
		"CUTROOM_WORKER_BACKLOG": number(backlog), "CUTROOM_WORKER_IDLE": number(idle),
	}
}
