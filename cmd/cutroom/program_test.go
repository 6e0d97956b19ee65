package main_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cutroom/shared/testkit/await"
	"cutroom/shared/testkit/servertest"
)

// program is the built command. fixtures contains the media that tests send. smallResults is the path of the servers'
// catalog. TestMain sets all of them.
var (
	program      servertest.Program
	fixtures     media
	smallResults string
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(runAll(m))
}

// runAll prepares and runs the tests. It is separate because os.Exit skips deferred calls.
func runAll(m *testing.M) int {
	folder, err := os.MkdirTemp("", "cutroom-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(folder)
	ctx, cancel := context.WithTimeout(context.Background(), await.Max)
	defer cancel()
	if program, err = servertest.Build(ctx, folder); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if fixtures, err = makeMedia(ctx, folder); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	smallResults = filepath.Join(folder, "catalog.yaml")
	source, err := os.ReadFile(catalogPath)
	if err == nil {
		err = os.WriteFile(smallResults, servertest.SmallResults(source), 0o600)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

var catalogPath = filepath.Join("..", "..", "shared", "domain", "catalog", "catalog.yaml")

// bounded returns a context for a single wait. steps returns a context for a test with many waits.
func bounded(t *testing.T) context.Context { return await.Context(t) }
func steps(t *testing.T) context.Context   { return await.TestContext(t) }

func submit(ctx context.Context, t *testing.T, client *servertest.Client, clip []byte) string {
	t.Helper()
	job, err := client.Submit(ctx, "gen-2.1", servertest.Form{servertest.File("data", "clip.mp4", clip),
		servertest.Text("prompt", "film noir")})
	if err != nil {
		t.Fatal(err)
	}
	return job.ID
}

// start starts a server on the data folder until the test ends. The server's results are small
// unless the settings name a catalog.
func start(t *testing.T, data string, settings ...string) *servertest.Server {
	t.Helper()
	server, err := program.Start(bounded(t), data, append([]string{"CUTROOM_CATALOG=" + smallResults}, settings...)...)
	if err != nil {
		t.Fatal(err)
	}
	endWith(t, server)
	return server
}

// endWith kills the server when the test ends, and logs its output if the test failed.
func endWith(t *testing.T, server *servertest.Server) {
	t.Cleanup(func() {
		server.Kill()
		if t.Failed() {
			t.Logf("the end of the log of server %d:\n%s", server.PID(), tail(server.Log()))
		}
	})
}

func tail(log string) string {
	const shown = 60
	lines := slices.DeleteFunc(strings.SplitAfter(log, "\n"),
		func(line string) bool { return strings.Contains(line, "method=GET") })
	return strings.Join(lines[max(0, len(lines)-shown):], "")
}

func stop(t *testing.T, server *servertest.Server) {
	t.Helper()
	if code, err := server.Stop(bounded(t)); err != nil || code != 0 {
		t.Fatalf("the server stopped with exit code %d and %v, want 0", code, err)
	}
}

func newKey(t *testing.T, data string, settings []string, args ...string) string {
	t.Helper()
	args = append([]string{"keys", "create"}, args...)
	ended, err := program.Run(bounded(t), append(settings, "CUTROOM_DATA="+data), args...)
	if err != nil || ended.ExitCode != 0 {
		t.Fatalf("cutroom %s: %v, %+v", strings.Join(args, " "), err, ended)
	}
	return strings.TrimSpace(ended.Stdout)
}

func hasStatus(err error, status int) bool {
	var failure *servertest.StatusError
	return errors.As(err, &failure) && failure.Status == status
}

// processesOn returns the command lines of engine processes that use the data folder. On systems
// without /proc, it returns nil.
func processesOn(t *testing.T, data string) []string {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, path := range paths {
		line, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(line), data) {
			found = append(found, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return found
}

func eventually(t *testing.T, what string, condition func() bool, seen ...func() any) {
	t.Helper()
	await.Until(t, what, condition, seen...)
}

func filesIn(t *testing.T, folder string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		relative, err := filepath.Rel(folder, path)
		files = append(files, relative)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
