package clitest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"image"
	"image/png"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"cutroom/shared/testkit/await"
	"cutroom/shared/testkit/programtest"
	"cutroom/shared/testkit/servertest"
)

var program string

func TestMain(m *testing.M) { os.Exit(programtest.Main(m, "cutroom/cmd/cutroom", &program)) }

func bounded(t *testing.T) context.Context {
	t.Helper()
	return await.Context(t)
}

type shell struct {
	t        *testing.T
	folder   string
	settings []string
}

func newShell(t *testing.T, settings ...string) shell {
	t.Helper()
	folder := t.TempDir()
	return shell{t, folder, append([]string{"HOME=" + folder, "XDG_CONFIG_HOME=", "TERM=xterm", "TZ=UTC"}, settings...)}
}

func at(t *testing.T, url, inferenceURL string) shell {
	t.Helper()
	return newShell(t, "CUTROOM_URL="+url, "CUTROOM_INFERENCE_URL="+inferenceURL, "CUTROOM_API_KEY="+servertest.Key)
}

// with returns the shell with additional settings. If a variable is set twice, the last value is used.
func (s shell) with(settings ...string) shell {
	s.settings = slices.Concat(s.settings, settings)
	return s
}

func (s shell) command(args []string) *exec.Cmd {
	command := exec.CommandContext(bounded(s.t), program, args...)
	command.Dir = s.folder
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "CUTROOM_") && !strings.HasPrefix(variable, "COMP_") {
			command.Env = append(command.Env, variable)
		}
	}
	command.Env = append(command.Env, s.settings...)
	command.WaitDelay = 5 * time.Second
	return command
}

type ended struct {
	stdout, stderr string
	code           int
}

func (s shell) run(args ...string) ended { s.t.Helper(); return s.feed("", args...) }

// feed is like run, with input on stdin.
func (s shell) feed(stdin string, args ...string) ended {
	s.t.Helper()
	var stdout, stderr bytes.Buffer
	command := s.command(args)
	command.Stdin, command.Stdout, command.Stderr = strings.NewReader(stdin), &stdout, &stderr
	err := command.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		s.t.Fatalf("cutroom %s: %v", strings.Join(args, " "), err)
	}
	written := stderr.String()
	if !slices.Contains(args, "-") { // with "-", stdout is an image
		written += stdout.String()
	}
	if strings.Contains(written, "\x1b") {
		s.t.Errorf("cutroom %s wrote for a terminal: %q %q", strings.Join(args, " "), &stdout, &stderr)
	}
	return ended{stdout.String(), stderr.String(), command.ProcessState.ExitCode()}
}

// works fails the test if the command fails. It returns stdout without the final newline.
func (s shell) works(args ...string) string {
	s.t.Helper()
	got := s.run(args...)
	if got.code != 0 {
		s.t.Fatalf("cutroom %s: %+v", strings.Join(args, " "), got)
	}
	return strings.TrimSuffix(got.stdout, "\n")
}

// documents is like works, but adds --json. It returns the JSON documents in stdout.
func (s shell) documents(args ...string) []map[string]any {
	s.t.Helper()
	var documents []map[string]any
	for line := range strings.Lines(s.works(append(args, "--json")...)) {
		var document map[string]any
		if err := json.Unmarshal([]byte(line), &document); err != nil {
			s.t.Fatalf("cutroom %s --json printed %q: %v", strings.Join(args, " "), line, err)
		}
		documents = append(documents, document)
	}
	return documents
}

func (s shell) save(name string, content []byte) {
	s.t.Helper()
	path := filepath.Join(s.folder, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s shell) read(name string) []byte {
	s.t.Helper()
	content, err := os.ReadFile(filepath.Join(s.folder, name))
	if err != nil {
		s.t.Fatal(err)
	}
	return content
}

type terminal struct {
	t       *testing.T
	command *exec.Cmd
	keys    *os.File
	screen  *programtest.Output
	// read is closed when all output has been read.
	read chan struct{}
}

func (s shell) open(args ...string) *terminal {
	s.t.Helper()
	command := s.command(args)
	keys, err := pty.StartWithSize(command, &pty.Winsize{Rows: 30, Cols: 100})
	if err != nil {
		s.t.Fatal(err)
	}
	opened := &terminal{s.t, command, keys, &programtest.Output{}, make(chan struct{})}
	go func() {
		defer close(opened.read)
		_, _ = io.Copy(opened.screen, keys) // returns when the program ends; on Linux, with an error
	}()
	s.t.Cleanup(func() {
		_ = command.Process.Kill() // it may have ended
		keys.Close()
		await.Receive(s.t, "opened.read", opened.read)
	})
	return opened
}

func (o *terminal) waitFor(text string, times int) {
	o.t.Helper()
	ctx := bounded(o.t)
	for {
		more := o.screen.More()
		if strings.Count(o.screen.String(), text) >= times {
			return
		}
		select {
		case <-more:
		case <-o.read:
			if strings.Count(o.screen.String(), text) < times {
				o.t.Fatalf("the program ended without %q: %q", text, o.screen)
			}
		case <-ctx.Done():
			o.t.Fatalf("the screen never showed %q: %q", text, o.screen)
		}
	}
}

func (o *terminal) press(keys string) {
	o.t.Helper()
	if _, err := io.WriteString(o.keys, keys); err != nil {
		o.t.Fatal(err)
	}
}

func (o *terminal) wait() int {
	o.t.Helper()
	_ = o.command.Wait() // ProcessState contains the exit status
	select {
	case <-o.read:
	case <-bounded(o.t).Done():
		o.t.Fatal("the terminal stayed open")
	}
	return o.command.ProcessState.ExitCode()
}

func picture(t *testing.T) []byte {
	t.Helper()
	var encoded bytes.Buffer
	if err := png.Encode(&encoded, image.NewGray(image.Rect(0, 0, 64, 36))); err != nil {
		t.Fatal(err)
	}
	return encoded.Bytes()
}

func clip(t *testing.T, seconds string) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "clip.mp4")
	out, err := exec.CommandContext(bounded(t), "ffmpeg", "-v", "error", "-f", "lavfi", "-i",
		"testsrc=size=64x36:rate=10:duration="+seconds,
		"-pix_fmt", "yuv420p", path).CombinedOutput()
	if err != nil {
		t.Fatalf("ffmpeg: %v\n%s", err, out)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}
