package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"cutroom/shared/adapter/ecs"
)

const (
	// startTime is how long the start of the task is tried: a role that was made just now
	// is unknown for some seconds, and an account's quota of tasks may be used up by workers
	// that are about to end.
	startTime = 2 * time.Minute
	// tryTime limits the whole attempt, so that the function can still answer: it may run for 15 minutes.
	tryTime = 13 * time.Minute
	// stopTime limits the end of a task that takes too long.
	stopTime = 15 * time.Second
)

type tasks interface {
	Run(ctx context.Context, task ecs.Task, token string) (arn string, err error)
	State(ctx context.Context, task ecs.Task, arn string) (ecs.TaskState, error)
	Stop(ctx context.Context, task ecs.Task, arn, why string) error
}

// handler handles a request of CloudFormation. Its answer to Lambda means nothing.
type handler = func(context.Context, event) (any, error)

type smoke struct {
	tasks  tasks
	stacks *stacks
	client *http.Client
	logger *slog.Logger
	poll   time.Duration
}

// handle serves a request and sends CloudFormation the result. If the answer cannot be sent, it fails, and
// Lambda repeats the request. The task's token is the request's, so the repetition starts no second task.
func (s *smoke) handle(ctx context.Context, e event) (any, error) {
	failure := s.serve(ctx, e)
	if failure != nil {
		s.logger.ErrorContext(ctx, "the workers' task is not fit for a deploy", "error", failure)
	}
	return nil, answerTo(e, failure).send(ctx, s.client, e.ResponseURL)
}

// serve tries the task of a request. A deploy that is rolled back returns to a task that
// was tried before, and has to end whatever happens.
func (s *smoke) serve(ctx context.Context, e event) error {
	switch e.RequestType {
	case "Create":
	case "Update":
		back, err := s.stacks.rollsBack(ctx, e.StackID)
		if err != nil {
			s.logger.WarnContext(ctx, "cannot find out whether the deploy is rolled back", "error", err)
		}
		if back {
			s.logger.InfoContext(ctx, "the deploy is rolled back: its task was tried before")
			return nil
		}
	default: // "Delete"
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, tryTime)
	defer cancel()
	return s.try(ctx, e)
}

// try runs a task until it ends, and a second one if the first could not be started.
func (s *smoke) try(ctx context.Context, e event) error {
	p := e.ResourceProperties
	task := ecs.Task{
		Cluster: p.Cluster, Definition: p.TaskDefinition, Container: p.Container, Command: []string{"-smoke"},
		Subnets: p.Subnets, SecurityGroups: p.SecurityGroups, PublicAddress: p.PublicAddress == "true",
	}
	const most = 2
	for attempt := 1; ; attempt++ {
		arn, err := s.start(ctx, task, fmt.Sprintf("%s-%d", e.RequestID, attempt))
		if err != nil {
			return err
		}
		s.logger.InfoContext(ctx, "a task is tried", "task", arn, "definition", task.Definition)
		state, err := s.wait(ctx, task, arn)
		where := fmt.Sprintf("its log is %s, stream %s/%s/%s", p.LogGroup, p.Container, p.Container, idOf(arn))
		switch {
		case err != nil:
			return fmt.Errorf("the workers' task did not end: %w; %s", err, where)
		case state.ExitCode == nil && attempt < most:
			s.logger.WarnContext(ctx, "the task could not be started", "task", arn, "reason", state.Reason)
		case state.ExitCode == nil:
			return fmt.Errorf("the workers' task could not be started: %s", state.Reason)
		case *state.ExitCode != 0:
			return fmt.Errorf("the workers' task ended with %d: %s; %s", *state.ExitCode, state.Reason, where)
		default:
			return nil
		}
	}
}

// start starts a task, which may take some tries.
func (s *smoke) start(ctx context.Context, task ecs.Task, token string) (arn string, err error) {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	for {
		arn, err := s.tasks.Run(ctx, task, token)
		if err == nil {
			return arn, nil
		}
		s.logger.WarnContext(ctx, "cannot start a task", "error", err)
		if s.pause(ctx) != nil {
			return "", fmt.Errorf("the workers' task could not be started: %w", err)
		}
	}
}

// wait waits until a task has ended. If the time is over, it ends the task.
func (s *smoke) wait(ctx context.Context, task ecs.Task, arn string) (ecs.TaskState, error) {
	for {
		state, err := s.tasks.State(ctx, task, arn)
		if err != nil {
			s.logger.WarnContext(ctx, "describe a task", "task", arn, "error", err)
		} else if state.Stopped {
			return state, nil
		}
		if late := s.pause(ctx); late != nil {
			stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
			defer cancel()
			return state, errors.Join(late, s.tasks.Stop(stopping, task, arn, "it took too long to try"))
		}
	}
}

func (s *smoke) pause(ctx context.Context) error {
	timer := time.NewTimer(s.poll)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// idOf returns the id in the ARN of a task, which names its log.
func idOf(arn string) string { return arn[strings.LastIndex(arn, "/")+1:] }

// withoutURL returns an error without the signed URL that it names.
func withoutURL(err error) error {
	var call *url.Error
	if errors.As(err, &call) {
		return call.Err
	}
	return err
}
