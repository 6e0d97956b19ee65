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
	// startTime is the timeout for all attempts to start the task. A new role is unknown for some
	// seconds, and workers that are about to stop may use up an account's task quota.
	startTime = 2 * time.Minute
	// tryTime is the timeout for the entire test. The function may run for 15 minutes.
	tryTime = 13 * time.Minute
	// stopTime is the timeout for stopping a task that takes too long.
	stopTime = 15 * time.Second
)

type tasks interface {
	Run(ctx context.Context, task ecs.Task, token string) (arn string, err error)
	State(ctx context.Context, task ecs.Task, arn string) (ecs.TaskState, error)
	Stop(ctx context.Context, task ecs.Task, arn, why string) error
}

type handler = func(context.Context, event) (any, error)

type smoke struct {
	tasks  tasks
	stacks *stacks
	client *http.Client
	logger *slog.Logger
	poll   time.Duration
}

// handle serves a request and sends the result to CloudFormation. If it cannot send the result, it
// returns an error, and Lambda repeats the request. The request's token prevents a second task.
func (s *smoke) handle(ctx context.Context, e event) (any, error) {
	failure := s.serve(ctx, e)
	if failure != nil {
		s.logger.ErrorContext(ctx, "the smoke test of the worker task failed", "error", failure)
	}
	return nil, answerTo(e, failure).send(ctx, s.client, e.ResponseURL)
}

// serve tests a request's task. It skips the test during a rollback, because a rollback must always succeed.
func (s *smoke) serve(ctx context.Context, e event) error {
	switch e.RequestType {
	case "Create":
	case "Update":
		back, err := s.stacks.rollsBack(ctx, e.StackID)
		if err != nil {
			s.logger.WarnContext(ctx, "cannot tell whether the deployment is being rolled back", "error", err)
		}
		if back {
			s.logger.InfoContext(ctx, "skipped the test, because the deployment is being rolled back")
			return nil
		}
	default: // "Delete"
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, tryTime)
	defer cancel()
	return s.try(ctx, e)
}

// try runs a task until it ends. If the first task does not start, it runs another.
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
		s.logger.InfoContext(ctx, "testing a task", "task", arn, "definition", task.Definition)
		state, err := s.wait(ctx, task, arn)
		where := fmt.Sprintf("its log is %s, stream %s/%s/%s", p.LogGroup, p.Container, p.Container, idOf(arn))
		switch {
		case err != nil:
			return fmt.Errorf("the worker task did not end: %w; %s", err, where)
		case state.ExitCode == nil && attempt < most:
			s.logger.WarnContext(ctx, "cannot start the task", "task", arn, "reason", state.Reason)
		case state.ExitCode == nil:
			return fmt.Errorf("cannot start the worker task: %s", state.Reason)
		case *state.ExitCode != 0:
			return fmt.Errorf("the worker task exited with code %d: %s; %s", *state.ExitCode, state.Reason, where)
		default:
			return nil
		}
	}
}

// start starts a task, trying again until startTime is over.
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
			return "", fmt.Errorf("cannot start the worker task: %w", err)
		}
	}
}

func (s *smoke) wait(ctx context.Context, task ecs.Task, arn string) (ecs.TaskState, error) {
	for {
		state, err := s.tasks.State(ctx, task, arn)
		if err != nil {
			s.logger.WarnContext(ctx, "cannot describe a task", "task", arn, "error", err)
		} else if state.Stopped {
			return state, nil
		}
		if late := s.pause(ctx); late != nil {
			stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
			defer cancel()
			return state, errors.Join(late, s.tasks.Stop(stopping, task, arn, "the test took too long"))
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

// idOf returns a task's id from its ARN. Its log stream's name contains the id.
func idOf(arn string) string { return arn[strings.LastIndex(arn, "/")+1:] }

func withoutURL(err error) error {
	var call *url.Error
	if errors.As(err, &call) {
		return call.Err
	}
	return err
}
