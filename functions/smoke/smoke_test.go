package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"cutroom/shared/adapter/ecs"
	"cutroom/shared/testkit/awstest"
)

const taskARN = "arn:aws:ecs:eu-central-1:123456789012:task/cutroom-dev/1a2b3c"

// fakeTasks runs no task, and says of those that it is asked for what it is told to.
type fakeTasks struct {
	// refusals are how many starts fail before one succeeds.
	refusals int
	// states are those of the tasks in order, each looked at once before it has ended.
	states []ecs.TaskState

	tokens  []string
	tasks   []ecs.Task
	looks   int
	stopped string
}

func (f *fakeTasks) Run(_ context.Context, task ecs.Task, token string) (string, error) {
	if f.refusals--; f.refusals >= 0 {
		return "", errors.New("AccessDeniedException: not yet")
	}
	f.tokens, f.tasks = append(f.tokens, token), append(f.tasks, task)
	return taskARN, nil
}

func (f *fakeTasks) State(context.Context, ecs.Task, string) (ecs.TaskState, error) {
	f.looks++
	switch f.looks % 3 {
	case 1:
		return ecs.TaskState{}, errors.New("MISSING")
	case 2:
		return ecs.TaskState{}, nil
	}
	return f.states[min(len(f.tasks), len(f.states))-1], nil
}

func (f *fakeTasks) Stop(_ context.Context, _ ecs.Task, arn, why string) error {
	f.stopped = arn + " " + why
	return nil
}

// formation is what CloudFormation is to the function: a stack, and a URL for the answer.
type formation struct {
	*httptest.Server
	// status is that of the stack, lost how many answers are lost.
	status string
	lost   int
	answer map[string]any
}

func newFormation(t *testing.T, status string, lost int) *formation {
	t.Helper()
	f := &formation{status: status, lost: lost}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		switch {
		case err != nil:
			t.Error(err)
		case r.Method == http.MethodPost: // of the SDK
			fmt.Fprintf(w, `<DescribeStacksResponse><DescribeStacksResult><Stacks><member><StackName>cutroom-dev</StackName>`+
				`<CreationTime>2026-11-22T12:00:00Z</CreationTime><StackStatus>%s</StackStatus></member></Stacks>`+
				`</DescribeStacksResult></DescribeStacksResponse>`, f.status)
		case f.lost > 0:
			f.lost--
			w.WriteHeader(http.StatusInternalServerError)
		default:
			if r.Method != http.MethodPut || r.Header.Get("Content-Type") != "" {
				t.Errorf("the answer is a %s of the type %q", r.Method, r.Header.Get("Content-Type"))
			}
			if len(body) > 4096 {
				t.Errorf("the answer has %d bytes, more than CloudFormation accepts", len(body))
			}
			if err := json.Unmarshal(body, &f.answer); err != nil {
				t.Errorf("%v: %s", err, body)
			}
		}
	}))
	t.Cleanup(f.Close)
	return f
}

func ended(code int, reason string) ecs.TaskState {
	return ecs.TaskState{Stopped: true, ExitCode: aws.Int(code), Reason: reason}
}

// A deploy goes on only if the task has ended with 0; each failure says what happened and
// where the log is. A rollback goes on without a task.
func TestAnswers(t *testing.T) {
	unstarted := ecs.TaskState{Stopped: true, Reason: "CannotPullContainerError: no such image"}
	for _, c := range []struct {
		name, request, stack string
		tasks                fakeTasks
		lost                 int
		// runs is how many tasks are run, reason what the answer says; "" is success.
		runs   int
		reason string
	}{
		{"a task that ends well", "Create", "", fakeTasks{states: []ecs.TaskState{ended(0, "")}}, 0, 1, ""},
		{"a deploy that changes the task", "Update", "UPDATE_IN_PROGRESS",
			fakeTasks{states: []ecs.TaskState{ended(0, "")}}, 0, 1, ""},
		{"a role that is not known yet", "Create", "",
			fakeTasks{refusals: 3, states: []ecs.TaskState{ended(0, "")}}, 0, 1, ""},
		{"a broken program", "Update", "UPDATE_IN_PROGRESS",
			fakeTasks{states: []ecs.TaskState{ended(1, "Essential container in task exited")}}, 0, 1,
			"ended with 1: Essential container in task exited; its log is /cutroom/dev/worker, stream worker/worker/1a2b3c"},
		{"a reason that JSON makes six times as long", "Create", "",
			fakeTasks{states: []ecs.TaskState{ended(1, strings.Repeat("\x01<é", 5000))}}, 0, 1, "ended with 1: \x01<é\x01<é"},
		{"an image that is not there", "Create", "", fakeTasks{states: []ecs.TaskState{unstarted, unstarted}}, 0, 2,
			"could not be started: CannotPullContainerError: no such image"},
		{"a start that fails once", "Create", "", fakeTasks{states: []ecs.TaskState{unstarted, ended(0, "")}}, 0, 2, ""},
		{"a rollback", "Update", "UPDATE_ROLLBACK_IN_PROGRESS", fakeTasks{}, 0, 0, ""},
		{"a deletion", "Delete", "", fakeTasks{}, 0, 0, ""},
		{"an answer that is lost", "Create", "", fakeTasks{states: []ecs.TaskState{ended(0, "")}}, 1, 1, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			cloud := newFormation(t, c.stack, c.lost)
			s := &smoke{tasks: &c.tasks, stacks: newStacks(awstest.ConfigFor(cloud.URL)), client: cloud.Client(),
				logger: slog.New(slog.NewTextHandler(t.Output(), nil)), poll: time.Millisecond}
			e := event{
				RequestType: c.request, RequestID: "8a1c", ResponseURL: cloud.URL + "/answer?signed", StackID: "stack",
				LogicalResourceID: "Smoke",
				ResourceProperties: properties{Cluster: "cutroom-dev", TaskDefinition: "worker:7", Container: "worker",
					Subnets: []string{"subnet-1"}, SecurityGroups: []string{"sg-1"}, PublicAddress: "true",
					LogGroup: "/cutroom/dev/worker"},
			}
			if _, err := s.handle(t.Context(), e); err != nil {
				t.Fatal(err)
			}
			want := "SUCCESS"
			if c.reason != "" {
				want = "FAILED"
			}
			if got, _ := cloud.answer["Reason"].(string); cloud.answer["Status"] != want || !strings.Contains(got, c.reason) {
				t.Errorf("it answers %v, want %s with %q", cloud.answer, want, c.reason)
			}
			if cloud.answer["RequestId"] != "8a1c" || cloud.answer["StackId"] != "stack" ||
				cloud.answer["LogicalResourceId"] != "Smoke" || cloud.answer["PhysicalResourceId"] != "smoke" {
				t.Errorf("it answers another request: %v", cloud.answer)
			}
			if len(c.tasks.tasks) != c.runs {
				t.Fatalf("%d tasks were run, want %d", len(c.tasks.tasks), c.runs)
			}
			for i, task := range c.tasks.tasks {
				if fmt.Sprint(task.Command) != "[-smoke]" || task.Definition != "worker:7" || !task.PublicAddress {
					t.Errorf("the task is %+v", task)
				}
				if want := fmt.Sprintf("8a1c-%d", i+1); c.tasks.tokens[i] != want {
					t.Errorf("its token is %s, want %s", c.tasks.tokens[i], want)
				}
			}
		})
	}
}

// A task that does not end is ended, and one that cannot be started is given up.
func TestTasksThatTakeTooLong(t *testing.T) {
	for name, c := range map[string]struct {
		tasks  fakeTasks
		reason string
		stops  bool
	}{
		"endless":   {fakeTasks{states: []ecs.TaskState{{}}}, "did not end", true},
		"forbidden": {fakeTasks{refusals: 1 << 30}, "AccessDeniedException", false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				s := &smoke{tasks: &c.tasks, logger: slog.New(slog.DiscardHandler), poll: time.Second}
				err := s.try(ctx, event{})
				if err == nil || !strings.Contains(err.Error(), c.reason) {
					t.Errorf("it ends with %v, want %s", err, c.reason)
				}
				if stops := strings.HasPrefix(c.tasks.stopped, taskARN); stops != c.stops {
					t.Errorf("stopped was %q", c.tasks.stopped)
				}
			})
		})
	}
}
