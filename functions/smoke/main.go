// Function smoke tests a worker task before a deployment hands it to the workers' ECS service. At first no worker
// runs, so without this test a deployment of a broken image would succeed, and the first job would fail.
//
// CloudFormation invokes it as a custom resource whenever the task definition among its properties changes. It
// runs one task that checks whether a worker could work (cmd/worker, -smoke), and responds to CloudFormation when
// the task has ended. Unless the exit code is 0, the deployment fails and is rolled back.
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

// pollTime is the interval between two checks of the task.
const pollTime = 5 * time.Second
