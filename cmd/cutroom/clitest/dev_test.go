package clitest

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"cutroom/shared/testkit/c2patest"
	"cutroom/shared/testkit/servertest"
)

// The log is complete if it is written to a pipe.
func TestTerminalLogIsBrief(t *testing.T) {
	t.Parallel()
	s := newShell(t, "CUTROOM_ADDR=127.0.0.1:0", "CUTROOM_INFERENCE_ADDR=127.0.0.1:0", "CUTROOM_DEV_KEY="+servertest.Key)
	server := s.open("dev")
	server.waitFor("Press Ctrl-C to stop.", 1)
	_, rest, _ := strings.Cut(server.screen.String(), "Media API")
	caller := at(t, strings.Fields(rest)[0], "")
	caller.works("quota")
	stored := filepath.Join(t.TempDir(), "note.txt")
	if err := os.WriteFile(stored, []byte("a note"), 0o600); err != nil {
		t.Fatal(err)
	}
	caller.works("files", "put", stored)
	server.waitFor("msg=request", 1)
	server.press("\x03")
	if code := server.wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	_, log, _ := strings.Cut(server.screen.String(), "Press Ctrl-C to stop.")
	line := regexp.MustCompile(`(?m)^.*msg=request.*$`).FindString(log)
	want := regexp.MustCompile(
		`^time=\d\d:\d\d:\d\d msg=request .*method=POST route=/v1/files status=200 .*duration=[\d.]+(µ|m)?s\r$`)
	if !want.MatchString(line) {
		t.Errorf("the request was logged as %q", line)
	}
	if strings.Contains(log, "/v1/realtime/quota") {
		t.Errorf("a read is logged: %s", log)
	}
}

// A server can be started in the same folder repeatedly, and every command finds it there.
func TestDevUsesTheWorkingDirectory(t *testing.T) {
	t.Parallel()
	s := newShell(t, "CUTROOM_ADDR=127.0.0.1:0", "CUTROOM_INFERENCE_ADDR=127.0.0.1:0")
	data := filepath.Join(s.folder, ".cutroom")
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	// signs checks that signing works even if the data folder is the only writable folder and is empty, as it may be
	// in a container.
	signs := func() {
		t.Helper()
		printed := s.with("TMPDIR=/dev/null", "CUTROOM_C2PA=on", "CUTROOM_C2PA_LIBRARY="+c2patest.Path(t)).run("doctor")
		if !strings.Contains(printed.stdout, "ok    signing") {
			t.Errorf("with only a writable data folder doctor prints %s", printed.stdout)
		}
	}
	signs()
	if left, err := os.ReadDir(data); err != nil || len(left) > 0 {
		t.Errorf("doctor left %v (%v)", left, err)
	}
	for _, start := range []string{"first", "second"} {
		server := s.open("dev")
		server.waitFor("Press Ctrl-C to stop.", 1)
		server.press("\x03")
		if code := server.wait(); code != 0 {
			t.Fatalf("the %s start exited with %d", start, code)
		}
	}
	if printed := s.run("doctor"); !strings.Contains(printed.stdout, "ok    database    it is sound") {
		t.Errorf("doctor printed %s", printed.stdout)
	}
	signs()
	if left, err := os.ReadDir(filepath.Join(data, "scratch")); err != nil || len(left) > 0 {
		t.Errorf("doctor left %v (%v)", left, err)
	}
	s.works("keys", "list")
	if printed := s.works("doctor", "--repair"); strings.Contains(printed, "warn") || strings.Contains(printed, "fail") {
		t.Errorf("doctor --repair printed %s", printed)
	}
}

// A program that starts a server reads its URL and the path of its key, but never sees the key itself.
func TestDevPrintsOneLineForPrograms(t *testing.T) {
	t.Parallel()
	s := newShell(t, "CUTROOM_ADDR=127.0.0.1:0", "CUTROOM_INFERENCE_ADDR=127.0.0.1:0")
	server := s.command([]string{"dev", "--json"})
	server.Cancel = func() error { return server.Process.Signal(syscall.SIGTERM) }
	stdout, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(stdout)
	line, err := lines.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	var out struct {
		URL          string `json:"url"`
		InferenceURL string `json:"inference_url"`
		KeyFile      string `json:"key_file"`
		Data         string `json:"data"`
	}
	if err := json.Unmarshal([]byte(line), &out); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	if want := filepath.Join(s.folder, ".cutroom"); out.Data != want || out.KeyFile != filepath.Join(want, "dev-key") {
		t.Errorf("dev printed %s", line)
	}
	kept, err := os.ReadFile(out.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	key := strings.TrimSpace(string(kept))
	at(t, out.URL, out.InferenceURL).with("CUTROOM_API_KEY=" + key).works("models")

	if err := server.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(lines)
	if waitErr := server.Wait(); err != nil || waitErr != nil || len(rest) > 0 {
		t.Errorf("dev exited with %q, %v, %v", rest, err, waitErr)
	}
	if strings.Contains(line, key) {
		t.Error("dev printed the key")
	}
}
