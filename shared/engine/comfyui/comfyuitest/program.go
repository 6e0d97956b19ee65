//go:build comfyui

package comfyuitest

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"cutroom/shared/testkit/await"
)

// Program is the real ComfyUI, running on the CPU with tiny checkpoints for the bundled workflows.
type Program struct {
	// URL stays the same after a restart.
	URL string

	command, folder string
	arguments       []string
	log             *buffer
	process         *exec.Cmd
	ended           chan struct{}
}

// StartProgram creates the checkpoints and starts the program, which is stopped when the test ends.
//
// CUTROOM_TEST_COMFYUI_HOME is the program's folder. CUTROOM_TEST_COMFYUI_PYTHON is a Python interpreter with the
// packages in the program's requirements.txt.
func StartProgram(t *testing.T) *Program {
	t.Helper()
	module, err := exec.CommandContext(t.Context(), "go", "env", "GOMOD").Output()
	if err != nil {
		t.Fatal(err)
	}
	tiny := filepath.Join(filepath.Dir(strings.TrimSpace(string(module))), "shared", "engine", "comfyui", "testdata", "tiny")
	home, python := os.Getenv("CUTROOM_TEST_COMFYUI_HOME"), os.Getenv("CUTROOM_TEST_COMFYUI_PYTHON")
	base := t.TempDir()
	if err := os.CopyFS(filepath.Join(base, "custom_nodes"), os.DirFS(filepath.Join(tiny, "custom_nodes"))); err != nil {
		t.Fatal(err)
	}
	// On a busy machine, more threads would mostly wait for each other.
	t.Setenv("OMP_NUM_THREADS", "1")
	t.Setenv("PYTHONDONTWRITEBYTECODE", "1")
	making := exec.CommandContext(await.TestContext(t), "nice", python, filepath.Join(tiny, "checkpoints.py"), home,
		filepath.Join(base, "models"))
	if out, err := making.CombinedOutput(); err != nil {
		t.Fatalf("make tiny checkpoints: %v\n%s", err, out)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	host, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
	p := &Program{
		URL: "http://" + net.JoinHostPort(host, port), command: "nice", folder: home, log: &buffer{},
		arguments: []string{
			python, "main.py", "--cpu", "--listen", host, "--port", port, "--base-directory", base,
			"--database-url", "sqlite:///:memory:", "--preview-method", "auto", "--disable-auto-launch", "--disable-api-nodes",
		},
	}
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("ComfyUI's log:\n%s", p.log)
		}
	})
	p.Start(t)
	return p
}

func (p *Program) Start(t *testing.T) {
	t.Helper()
	p.process = exec.Command(p.command, p.arguments...)
	p.process.Dir, p.process.Stdout, p.process.Stderr = p.folder, p.log, p.log
	if err := p.process.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	p.ended = ended
	go func(process *exec.Cmd) {
		defer close(ended)
		_ = process.Wait() // the log shows how it ended
	}(p.process)
	ctx := await.TestContext(t)
	for !p.answers(ctx) {
		select {
		case <-ended:
			t.Fatalf("ComfyUI ended:\n%s", p.log)
		case <-ctx.Done():
			t.Fatal("ComfyUI does not start")
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (p *Program) Kill() {
	if p.process != nil {
		_ = p.process.Process.Kill() // it may have exited already
		<-p.ended
	}
}

func (p *Program) answers(ctx context.Context) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.URL+"/prompt", nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	response.Body.Close()
	return response.StatusCode == http.StatusOK
}

type buffer struct {
	mu      sync.Mutex
	content bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.content.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.content.String()
}
