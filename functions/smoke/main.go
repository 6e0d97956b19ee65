// Function smoke tries a task of the workers before a deploy gives it to their service. No worker runs
// at first, so a deploy of a broken image would otherwise be green, and fail with the first job.
//
// CloudFormation starts it as a custom resource, with the task definition among its properties, whenever
// that changes. It runs one task that checks the workers' needs (cmd/worker, -smoke), and answers
// CloudFormation when the task has ended. Unless its exit code is 0, the deploy fails and is rolled back.
package main

import (
	"time"

	"cutroom/shared/adapter/ecs"
	"cutroom/shared/app/eventapp"
)

func main() { eventapp.Main(newSmoke) }

func newSmoke(p *eventapp.Parts) handler {
	s := &smoke{
		tasks: ecs.NewTasks(p.AWS), stacks: newStacks(p.AWS), client: newClient(), logger: p.Logger, poll: pollTime,
	}
	return s.handle
}

// pollTime is the time between two checks of the task.
const pollTime = 5 * time.Second
