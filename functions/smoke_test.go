package functions_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cutroom/shared/testkit/awstest"
)

// containerService responds like ECS and CloudFormation. For each task, it runs the worker's
// program. Each revision of the task definition has different variables.
type containerService struct {
	t         *testing.T
	program   string
	settings  []string
	revisions map[string][]string

	mu    sync.Mutex
	stack string // the stack's state
	tasks map[string]*exec.Cmd
	ended map[string]chan struct{}
}

func (s *containerService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	body, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Error(err)
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	switch operation {
	case "RunTask":
		s.run(w, body)
	case "DescribeTasks":
		s.describe(w, body)
	default:
		s.mu.Lock()
		defer s.mu.Unlock()
		w.Header().Set("Content-Type", "text/xml")
		fmt.Fprintf(w, `<DescribeStacksResponse><DescribeStacksResult><Stacks><member><StackName>cutroom-dev</StackName>`+
			`<CreationTime>2026-11-22T12:00:00Z</CreationTime><StackStatus>%s</StackStatus></member></Stacks>`+
			`</DescribeStacksResult></DescribeStacksResponse>`, s.stack)
	}
}

func (s *containerService) run(w http.ResponseWriter, body []byte) {
	var call struct {
		TaskDefinition string
		Overrides      struct {
			ContainerOverrides []struct{ Command []string }
		}
	}
	if err := json.Unmarshal(body, &call); err != nil {
		s.t.Error(err)
		return
	}
	revision := call.TaskDefinition[strings.LastIndex(call.TaskDefinition, ":")+1:]
	arn := awstest.Here.ARN("ecs", "task/cutroom-dev/"+revision)
	command := exec.Command(s.program, call.Overrides.ContainerOverrides[0].Command...)
	command.Env = slices.Concat(os.Environ(), s.settings, s.revisions[revision])
	command.Stdout, command.Stderr = s.t.Output(), s.t.Output()
	if err := command.Start(); err != nil {
		s.t.Error(err)
		return
	}
	ended := make(chan struct{})
	s.mu.Lock()
	s.tasks[arn], s.ended[arn] = command, ended
	s.mu.Unlock()
	go func() {
		_ = command.Wait() // ProcessState contains the exit status
		close(ended)
	}()
	fmt.Fprintf(w, `{"tasks":[{"taskArn":%q}],"failures":[]}`, arn)
}

func (s *containerService) describe(w http.ResponseWriter, body []byte) {
	var call struct{ Tasks []string }
	if err := json.Unmarshal(body, &call); err != nil {
		s.t.Error(err)
		return
	}
	s.mu.Lock()
	task, ended := s.tasks[call.Tasks[0]], s.ended[call.Tasks[0]]
	s.mu.Unlock()
	select {
	case <-ended:
		fmt.Fprintf(w, `{"tasks":[{"lastStatus":"STOPPED","stoppedReason":"Essential container in task exited",`+
			`"containers":[{"name":"worker","exitCode":%d}]}]}`, task.ProcessState.ExitCode())
	case <-time.After(time.Second): // long enough that the function rarely needs to poll again
		fmt.Fprint(w, `{"tasks":[{"lastStatus":"RUNNING","containers":[{"name":"worker"}]}]}`)
	}
}

// The function reports to CloudFormation how the worker's program ended.
func TestBrokenWorkersFailTheDeployment(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	service := &containerService{
		t: t, program: program(t, "worker"), tasks: map[string]*exec.Cmd{}, ended: map[string]chan struct{}{},
		settings: slices.Concat(w.settings, w.endpoint(t, "WorkerTaskRole"), []string{"CUTROOM_SCRATCH=" + t.TempDir()}),
		revisions: map[string][]string{
			"1": nil,
			// In these revisions, FFmpeg or a table is missing, or the engine is invalid.
			"2": {"PATH=" + t.TempDir()}, "3": {"CUTROOM_JOBS_TABLE=gone"}, "4": {"CUTROOM_ENGINE=nonsense"},
		},
	}
	server := httptest.NewServer(service)
	t.Cleanup(server.Close)
	calls := awstest.NewProxy(t, server.URL, 1, awstest.Faults{})
	w.names["task role"], w.names["execution role"] = "WorkerTaskRole", "WorkerTaskExecutionRole"
	w.names["gone"] = "cutroom-dev-jobs"
	w.guard(t, calls)
	f := w.start(t, "smoke", "AWS_ENDPOINT_URL_ECS="+calls.URL, "AWS_ENDPOINT_URL_CLOUDFORMATION="+calls.URL)
	sample, err := os.ReadFile(filepath.Join("..", "events", "smoke", "create.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ revision, request, stack, want string }{
		{"1", "Create", "CREATE_IN_PROGRESS", "SUCCESS"}, {"1", "Update", "UPDATE_IN_PROGRESS", "SUCCESS"},
		{"2", "Update", "UPDATE_IN_PROGRESS", "FAILED"}, {"3", "Create", "CREATE_IN_PROGRESS", "FAILED"},
		{"4", "Create", "CREATE_IN_PROGRESS", "FAILED"}, {"4", "Update", "UPDATE_ROLLBACK_IN_PROGRESS", "SUCCESS"},
		{"4", "Delete", "DELETE_IN_PROGRESS", "SUCCESS"},
	} {
		t.Run(c.request+" "+c.revision+" "+c.stack, func(t *testing.T) {
			service.mu.Lock()
			service.stack = c.stack
			service.mu.Unlock()
			var received map[string]any
			formation := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				if err := json.NewDecoder(r.Body).Decode(&received); err != nil {
					t.Error(err)
				}
			}))
			defer formation.Close()
			var event map[string]any
			if err := json.Unmarshal(sample, &event); err != nil {
				t.Fatal(err)
			}
			maps.Copy(event, map[string]any{"RequestType": c.request, "ResponseURL": formation.URL,
				"StackId": awstest.Here.ARN("cloudformation", "stack/cutroom-dev/1f4e2c60")})
			event["ResourceProperties"].(map[string]any)["TaskDefinition"] =
				awstest.Here.ARN("ecs", "task-definition/cutroom-dev-worker:"+c.revision)
			text, err := json.Marshal(event)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.Invoke(t.Context(), text); err != nil {
				t.Fatal(err)
			}
			if received["Status"] != c.want {
				t.Errorf("CloudFormation receives %v, want %s", received, c.want)
			}
		})
	}
}
