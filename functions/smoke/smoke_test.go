package main

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"cutroom/shared/adapter/ecs"
)

const taskARN = "arn:aws:ecs:eu-central-1:123456789012:task/cutroom-dev/1a2b3c"

type fakeTasks struct {
	// failures is how many starts fail before one succeeds.
	failures int
	// states lists the tasks' final states in order. Each task is polled once before it ends.
	states []ecs.TaskState

	tokens  []string
	tasks   []ecs.Task
	looks   int
	stopped string
}

func (f *fakeTasks) Run(_ context.Context, task ecs.Task, token string) (string, error) {
	if f.failures--; f.failures >= 0 {
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

func ended(code int, reason string) ecs.TaskState {
	return ecs.TaskState{Stopped: true, ExitCode: aws.Int(code), Reason: reason}
}

// A start that AWS rejects is retried, because a new role takes time to become known. A task that
// does not end is stopped. If starts keep failing, the function gives up.
func TestEndlessTasksAreStopped(t *testing.T) {
	for name, c := range map[string]struct {
		tasks  fakeTasks
		reason string
		stops  bool
	}{
		"rejected at first": {fakeTasks{failures: 3, states: []ecs.TaskState{ended(0, "")}}, "", false},
		"endless":           {fakeTasks{states: []ecs.TaskState{{}}}, "did not end", true},
		"forbidden":         {fakeTasks{failures: 1 << 30}, "AccessDeniedException", false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				s := &smoke{tasks: &c.tasks, logger: slog.New(slog.DiscardHandler), poll: time.Second}
				err := s.try(ctx, event{})
				if (err == nil) != (c.reason == "") || err != nil && !strings.Contains(err.Error(), c.reason) {
					t.Errorf("got %v, want %q", err, c.reason)
				}
				if stops := strings.HasPrefix(c.tasks.stopped, taskARN); stops != c.stops {
					t.Errorf("stopped %q", c.tasks.stopped)
				}
			})
		})
	}
}

// CloudFormation accepts responses of at most 4096 bytes.
func TestLongReasonIsTruncated(t *testing.T) {
	body, err := answerTo(event{}, errors.New(strings.Repeat("\x01<é", 5000))).encode()
	if err != nil || len(body) > 4096 {
		t.Errorf("the response has %d bytes, %v", len(body), err)
	}
}
