package ecs_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"cutroom/shared/adapter/ecs"
)

const task = "arn:aws:ecs:us-west-2:111122223333:task/1234567890abcdef0"

func agent(t *testing.T, status int, answer string) (*ecs.TaskProtection, *[]string) {
	t.Helper()
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		asked = append(asked, fmt.Sprintf("%s %s %s %s", r.Method, r.URL.Path, r.Header.Get("Content-Type"), body))
		w.WriteHeader(status)
		if answer != "" {
			_, _ = io.WriteString(w, answer) // fails if the caller has disconnected
			return
		}
		var request struct{ ProtectionEnabled bool }
		if err := json.Unmarshal(body, &request); err != nil {
			t.Error(err)
		}
		state := map[string]any{"ProtectionEnabled": request.ProtectionEnabled, "TaskArn": task}
		if request.ProtectionEnabled {
			state["ExpirationDate"] = "2026-11-21T12:00:00Z"
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"protection": state}) // fails if the caller has disconnected
	}))
	t.Cleanup(server.Close)
	protection, err := ecs.NewTaskProtection(server.URL+"/api/5a1b", server.Client())
	if err != nil {
		t.Fatal(err)
	}
	return protection, &asked
}

func TestBusyTaskIsProtectedUntilIdle(t *testing.T) {
	protection, asked := agent(t, http.StatusOK, "")
	for _, call := range []func(context.Context) error{protection.Busy, protection.Busy, protection.Idle} {
		if err := call(t.Context()); err != nil {
			t.Error(err)
		}
	}
	const to = "PUT /api/5a1b/task-protection/v1/state application/json "
	want := []string{
		to + `{"ProtectionEnabled":true,"ExpiresInMinutes":15}`, to + `{"ProtectionEnabled":true,"ExpiresInMinutes":15}`,
		to + `{"ProtectionEnabled":false}`,
	}
	if strings.Join(*asked, "\n") != strings.Join(want, "\n") {
		t.Errorf("the agent received\n%s\nwant\n%s", strings.Join(*asked, "\n"), strings.Join(want, "\n"))
	}
}

func TestFailedProtectionIsReported(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		answer string
		want   string
	}{
		"the task is outside a service": {
			http.StatusOK, `{"failure":{"Arn":"` + task +
				`","Detail":"The task is not part of a service.","Reason":"TASK_NOT_VALID"}}`,
			"TASK_NOT_VALID: The task is not part of a service.",
		},
		"the role has no permission": {
			http.StatusBadRequest, `{"requestID":"12345-abc-6789-0123-abc","error":{"Arn":"` + task +
				`","Code":"AccessDeniedException","Message":"User is not authorized"}}`,
			"AccessDeniedException: User is not authorized",
		},
		"a deployment already stops it": {
			http.StatusOK, `{"failure":{"Arn":"` + task + `","Detail":"","Reason":"DEPLOYMENT_BLOCKED"}}`, "DEPLOYMENT_BLOCKED",
		},
		"the agent fails":           {http.StatusInternalServerError, `oops`, "the agent returned 500"},
		"no JSON":                   {http.StatusOK, `oops`, "the agent's response"},
		"an empty response":         {http.StatusOK, `{}`, "did not set the requested state"},
		"the state does not change": {http.StatusOK, `{"protection":{"ProtectionEnabled":false,"TaskArn":"` + task + `"}}`, "did not set the requested state"},
		"an endless response":       {http.StatusOK, `{"protection":{"TaskArn":"` + strings.Repeat("x", 1<<20), "the agent's response"},
	} {
		t.Run(name, func(t *testing.T) {
			protection, _ := agent(t, c.status, c.answer)
			if err := protection.Busy(t.Context()); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got error %v, want an error with %q", err, c.want)
			}
		})
	}
}

func TestHangingAgentCallEndsWithContext(t *testing.T) {
	hang := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hang }))
	defer server.Close()
	defer close(hang)
	protection, err := ecs.NewTaskProtection(server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- protection.Idle(ctx) }()
	cancel()
	if err := <-done; err == nil {
		t.Error("the call returned no error")
	}
}

func TestInvalidAgentURIsAreRejected(t *testing.T) {
	for _, uri := range []string{"", "169.254.170.2", "/api", "ftp://169.254.170.2", "http://"} {
		if _, err := ecs.NewTaskProtection(uri, nil); err == nil {
			t.Errorf("the URI %q was accepted", uri)
		}
	}
}
