package ecs_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"cutroom/shared/adapter/ecs"
	"cutroom/shared/testkit/awstest"
)

// answering is a fake ECS with a response for each operation. It records the requests.
func answering(t *testing.T, answers map[string]string) (*ecs.Tasks, *[]string) {
	t.Helper()
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		asked = append(asked, operation+" "+string(body))
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		_, _ = io.WriteString(w, answers[operation]) // fails if the caller has disconnected
	}))
	t.Cleanup(server.Close)
	return ecs.NewTasks(awstest.ConfigFor(server.URL)), &asked
}

var smokeTask = ecs.Task{
	Cluster: "cutroom-dev", Definition: "arn:aws:ecs:us-west-2:111122223333:task-definition/worker:7",
	Container: "worker", Command: []string{"-smoke"}, PublicAddress: true,
	Subnets: []string{"subnet-1", "subnet-2"}, SecurityGroups: []string{"sg-1"},
}

func TestTaskIsRunOnce(t *testing.T) {
	tasks, asked := answering(t, map[string]string{"RunTask": `{"tasks":[{"taskArn":"` + task + `"}],"failures":[]}`})
	arn, err := tasks.Run(t.Context(), smokeTask, "token")
	if err != nil || arn != task {
		t.Fatalf("got %q, %v", arn, err)
	}
	_, body, _ := strings.Cut((*asked)[0], " ")
	var sent map[string]any
	if err := json.Unmarshal([]byte(body), &sent); err != nil {
		t.Fatal(err)
	}
	const want = "map[clientToken:token cluster:cutroom-dev count:1 launchType:FARGATE networkConfiguration:" +
		"map[awsvpcConfiguration:map[assignPublicIp:ENABLED securityGroups:[sg-1] subnets:[subnet-1 subnet-2]]] " +
		"overrides:map[containerOverrides:[map[command:[-smoke] name:worker]]] " +
		"taskDefinition:arn:aws:ecs:us-west-2:111122223333:task-definition/worker:7]"
	if got := fmt.Sprint(sent); got != want {
		t.Errorf("sent %s, want %s", got, want)
	}
}

func TestFailedStartIsReported(t *testing.T) {
	for answer, want := range map[string]string{
		`{"tasks":[],"failures":[{"reason":"RESOURCE:FARGATE","detail":"no capacity"}]}`: "RESOURCE:FARGATE: no capacity",
		`{"tasks":[],"failures":[]}`: "ECS started no task",
	} {
		tasks, _ := answering(t, map[string]string{"RunTask": answer})
		if _, err := tasks.Run(t.Context(), smokeTask, "token"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestTaskStatesAreDecoded(t *testing.T) {
	for name, c := range map[string]struct{ answer, want string }{
		"starting": {`{"tasks":[{"lastStatus":"PROVISIONING","containers":[{"name":"worker"}]}]}`, "false <nil> "},
		"ended": {`{"tasks":[{"lastStatus":"STOPPED","stoppedReason":"Essential container in task exited","containers":` +
			`[{"name":"engine","exitCode":137},{"name":"worker","exitCode":0}]}]}`, "true 0 Essential container in task exited"},
		"not started": {`{"tasks":[{"lastStatus":"STOPPED","stopCode":"TaskFailedToStart",` +
			`"stoppedReason":"Task failed to start","containers":[{"name":"worker","reason":"CannotPullContainerError: not found"}]}]}`,
			"true <nil> Task failed to start worker: CannotPullContainerError: not found"},
		"unknown": {`{"tasks":[],"failures":[{"arn":"` + task + `","reason":"MISSING"}]}`, "ecs: describe a task: MISSING"},
		"none":    {`{"tasks":[]}`, "ecs: describe a task: " + task + " does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			tasks, _ := answering(t, map[string]string{"DescribeTasks": c.answer})
			state, err := tasks.State(t.Context(), smokeTask, task)
			got := fmt.Sprint(state.Stopped, " ", state.ExitCode, " ", state.Reason)
			if state.ExitCode != nil {
				got = fmt.Sprint(state.Stopped, " ", *state.ExitCode, " ", state.Reason)
			}
			if err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestTaskIsStoppedWithReason(t *testing.T) {
	tasks, asked := answering(t, map[string]string{"StopTask": `{"task":{}}`})
	if err := tasks.Stop(t.Context(), smokeTask, task, "it took too long"); err != nil {
		t.Fatal(err)
	}
	want := `StopTask {"cluster":"cutroom-dev","reason":"it took too long","task":"` + task + `"}`
	if (*asked)[0] != want {
		t.Errorf("sent %s, want %s", (*asked)[0], want)
	}
}
