//go:build docker

package imagetest_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"cutroom/shared/adapter/sqsqueue"
	"cutroom/shared/app/fleetapp"
	"cutroom/shared/app/setting"
	"cutroom/shared/domain/fleet"
	"cutroom/shared/domain/job"
	"cutroom/shared/testkit/awstest"
)

// The local AWS runs the worker's image as tasks of an ECS service. The fleet's rules,
// which the functions wake and scale apply, raise it from none when there is work, and
// end it when there has been none for long.
func TestTasksScaleFromNoneAndBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "PYTHONPATH="+awstest.Tool(t, "docker-sdk"))
	client := w.media(t)
	tasks := ecs.NewFromConfig(w.cloud.Config())
	w.makeService(t, tasks)
	settings := map[string]string{"CUTROOM_CLUSTER": "cutroom", "CUTROOM_WORKER_SERVICE": "worker"}
	for _, one := range w.settings {
		name, value, _ := strings.Cut(one, "=")
		settings[name] = value
	}
	environment := setting.NewEnvironment(func(name string) string { return settings[name] })
	workers := fleetapp.New(environment, w.cloud.Config())
	if err := environment.Err(); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	workers.Now = func() time.Time { return now }
	workers.Rules = fleet.Rules{Max: 2, Backlog: 2, Idle: 10 * time.Minute}
	workers.Lengths = sqsqueue.NewLengths(w.cloud.Config(), map[job.Lane]string{
		job.VideoLane: settings["CUTROOM_VIDEO_QUEUE"], job.ImageLane: settings["CUTROOM_IMAGE_QUEUE"],
	})

	id := submit(t, client, "film noir")
	if woken, err := workers.Wake(t.Context()); err != nil || !woken.Rose() {
		t.Fatalf("woken: %v, %v", woken, err)
	}
	if running(t, tasks) != 1 {
		t.Fatalf("%d tasks run", running(t, tasks))
	}
	completed(t, client, id)

	// A look keeps them for as long as the rules say.
	for _, want := range []int{1, 0} {
		if _, err := workers.Look(t.Context()); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the service has as many tasks as the rules say", func() bool { return running(t, tasks) == want })
		now = now.Add(11 * time.Minute)
	}
}

// makeService makes a service of none of the world's workers, as a deploy does.
func (w *world) makeService(t *testing.T, client *ecs.Client) {
	t.Helper()
	var variables []types.KeyValuePair
	for _, one := range w.settings {
		name, value, _ := strings.Cut(one, "=")
		variables = append(variables, types.KeyValuePair{Name: &name, Value: &value})
	}
	_, err := client.CreateCluster(t.Context(), &ecs.CreateClusterInput{ClusterName: aws.String("cutroom")})
	if err == nil {
		_, err = client.RegisterTaskDefinition(t.Context(), &ecs.RegisterTaskDefinitionInput{
			Family: aws.String("worker"), ContainerDefinitions: []types.ContainerDefinition{{
				Name: aws.String("worker"), Image: aws.String(imageOf("cutroom-worker")), Environment: variables,
			}},
		})
	}
	if err == nil {
		_, err = client.CreateService(t.Context(), &ecs.CreateServiceInput{
			Cluster: aws.String("cutroom"), ServiceName: aws.String("worker"), TaskDefinition: aws.String("worker"),
			DesiredCount: aws.Int32(0),
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		left, err := tryDocker(ctx, tasksOfWorkers...)
		for _, id := range strings.Fields(left) {
			_, _ = tryDocker(ctx, "rm", "--force", "--volumes", id) // it may have gone
		}
		if err != nil {
			t.Error(err)
		}
	})
}

// tasksOfWorkers lists the containers of tasks, running or not.
var tasksOfWorkers = []string{
	"ps", "--all", "--quiet", "--filter", "label=ministack=ecs", "--filter", "ancestor=" + imageOf("cutroom-worker"),
}

// running returns how many containers of tasks run.
func running(t *testing.T, client *ecs.Client) int {
	t.Helper()
	found, err := client.DescribeServices(t.Context(), &ecs.DescribeServicesInput{
		Cluster: aws.String("cutroom"), Services: []string{"worker"},
	})
	if err != nil || len(found.Services) != 1 {
		t.Fatalf("%+v, %v", found, err)
	}
	containers := strings.Fields(docker(t, append(tasksOfWorkers, "--filter", "status=running")...))
	if int(found.Services[0].RunningCount) != len(containers) {
		t.Logf("the service has %d tasks, Docker %d", found.Services[0].RunningCount, len(containers))
	}
	return len(containers)
}
