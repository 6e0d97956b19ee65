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
	// protectedTime is the longest time that a job may take (docs/contract/jobs.md#deadline) plus the time to hand it
	// back, rounded up to whole minutes. After that, a hung task loses its protection.
	protectedTime = 15 * time.Minute
	// agentTime is the timeout for a call to the agent, which in turn calls ECS.
	agentTime     = 10 * time.Second
	longestAnswer = 64 << 10 // in bytes
)

// TaskProtection keeps scale-in and deployments from stopping its task while the task is busy. The task's role
// needs ecs:GetTaskProtection and ecs:UpdateTaskProtection on the task. Protection does not work for a task
// outside a service, nor if the task's instance stops, for example because of a spot interruption.
type TaskProtection struct {
	endpoint string
	client   *http.Client
}

// NewTaskProtection takes the value of ECS_AGENT_URI. client may be nil.
func NewTaskProtection(agentURI string, client *http.Client) (*TaskProtection, error) {
	base, err := url.Parse(agentURI)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" {
		return nil, fmt.Errorf("ecs: %q is not the URI of an agent", agentURI)
	}
	if client == nil {
		client = &http.Client{}
	}
	return &TaskProtection{endpoint: base.JoinPath("task-protection/v1/state").String(), client: client}, nil
}

// Busy must be called before work starts, and repeatedly while work continues.
func (p *TaskProtection) Busy(ctx context.Context) error {
	return p.set(ctx, protectionRequest{ProtectionEnabled: true, ExpiresInMinutes: int(protectedTime / time.Minute)})
}

func (p *TaskProtection) Idle(ctx context.Context) error { return p.set(ctx, protectionRequest{}) }

type protectionRequest struct {
	ProtectionEnabled bool
	ExpiresInMinutes  int `json:",omitempty"`
}

// protectionAnswer is the new state, the reason why ECS did not change it, or the agent's error.
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
		return fmt.Errorf("ecs: protect the task: the agent returned %s", response.Status)
	case err != nil:
		return fmt.Errorf("ecs: protect the task: decode the agent's response: %w", err)
	case answer.Protection == nil || answer.Protection.ProtectionEnabled != wanted.ProtectionEnabled:
		return fmt.Errorf("ecs: protect the task: the agent did not set the requested state")
	}
	return nil
}
