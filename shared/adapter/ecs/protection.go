package ecs

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

const (
	// protectedTime is for how long a busy task is protected, in whole minutes: as
	// long as a job can take, which ends within ten of its creation
	// (docs/contract/jobs.md#deadline), and what it takes to hand it back. A task
	// that hangs is protected no longer than this.
	protectedTime = 15 * time.Minute
	// agentTime bounds a call of the agent, which makes one of ECS in its turn.
	agentTime = 10 * time.Second
	// longestAnswer bounds what is read of an answer, in bytes.
	longestAnswer = 64 << 10
)

// TaskProtection keeps the task that it is in from being ended by scaling and by
// deploys while the task is busy. It asks the agent of ECS, by the endpoint for
// the protection of tasks from scale-in; the task's role needs
// ecs:GetTaskProtection and ecs:UpdateTaskProtection on the task. A task that runs
// by itself, and in no service, cannot be protected.
//
// It does not keep a task from being ended with its instance, as when a spot
// instance is taken back.
type TaskProtection struct {
	endpoint string
	client   *http.Client
}

// NewTaskProtection makes the protection of a task from the URI of the agent, the
// variable ECS_AGENT_URI of the task's containers. A nil client is a new one.
//
// Errors: the URI is none.
func NewTaskProtection(agentURI string, client *http.Client) (*TaskProtection, error) {
	base, err := url.Parse(agentURI)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" {
		return nil, fmt.Errorf("ecs: %q is no URI of the agent", agentURI)
	}
	if client == nil {
		client = &http.Client{}
	}
	return &TaskProtection{endpoint: base.JoinPath("task-protection/v1/state").String(), client: client}, nil
}

// Busy protects the task for the next 15 minutes, from now on. It is called before
// work is taken up, and again while the work goes on.
func (p *TaskProtection) Busy(ctx context.Context) error {
	return p.set(ctx, protectionRequest{ProtectionEnabled: true, ExpiresInMinutes: int(protectedTime / time.Minute)})
}

// Idle ends the protection.
func (p *TaskProtection) Idle(ctx context.Context) error {
	return p.set(ctx, protectionRequest{})
}

type protectionRequest struct {
	ProtectionEnabled bool
	ExpiresInMinutes  int `json:",omitempty"`
}

// protectionAnswer has one of its parts: the state that was reached, why ECS did
// not change it, or why the agent could not ask.
type protectionAnswer struct {
	Protection *struct{ ProtectionEnabled bool } `json:"protection"`
	Failure    *struct{ Reason, Detail string }  `json:"failure"`
	Error      *struct{ Code, Message string }   `json:"error"`
}

func (p *TaskProtection) set(ctx context.Context, wanted protectionRequest) error {
	ctx, cancel := context.WithTimeout(ctx, agentTime)
	defer cancel()
	body, err := json.Marshal(wanted)
	if err != nil {
		return fmt.Errorf("ecs: protect the task: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, p.endpoint, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("ecs: protect the task: %w", err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := p.client.Do(request)
	if err != nil {
		return fmt.Errorf("ecs: protect the task: %w", err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, longestAnswer))
	if err != nil {
		return fmt.Errorf("ecs: protect the task: %w", err)
	}
	var answer protectionAnswer
	err = json.Unmarshal(text, &answer)
	switch {
	case answer.Failure != nil:
		return fmt.Errorf("ecs: protect the task: %s: %s", answer.Failure.Reason, answer.Failure.Detail)
	case answer.Error != nil:
		return fmt.Errorf("ecs: protect the task: %s: %s", answer.Error.Code, answer.Error.Message)
	case response.StatusCode != http.StatusOK:
		return fmt.Errorf("ecs: protect the task: the agent answered %s", response.Status)
	case err != nil:
		return fmt.Errorf("ecs: protect the task: the agent's answer: %w", err)
	case answer.Protection == nil || answer.Protection.ProtectionEnabled != wanted.ProtectionEnabled:
		return fmt.Errorf("ecs: protect the task: the agent did not do as it was asked")
	}
	return nil
}
