package scripts_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// What a started program may depend on changes the digest that results of tests are kept
// for: a result that is kept in spite of it hides a defect.
func TestUnseen(t *testing.T) {
	root := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var settings []string
	run := func(name string, arguments ...string) string {
		t.Helper()
		command := exec.CommandContext(t.Context(), name, arguments...)
		command.Dir, command.Env = root, append(os.Environ(), settings...)
		out, err := command.Output()
		if err != nil {
			t.Fatalf("%s %q: %v", name, arguments, err)
		}
		return string(out)
	}
	digest := func() string {
		t.Helper()
		return run("sh", filepath.Join("scripts", "unseen.sh"), "bench") + run("sh", filepath.Join("scripts", "unseen.sh"), ".")
	}
	script, err := os.ReadFile("unseen.sh")
	if err != nil {
		t.Fatal(err)
	}
	write("scripts/unseen.sh", string(script))
	write("scripts/run.sh", "echo\n")
	write("server/server.go", "package server\n")
	write(".gitignore", ".tools\n")
	run("git", "init", "--quiet")

	last := digest()
	step := func(what string, changes bool, change func()) {
		t.Helper()
		change()
		now := digest()
		if (now != last) != changes {
			t.Errorf("%s: the digest changed: %v, want %v", what, now != last, changes)
		}
		last = now
	}
	step("nothing", false, func() {})
	step("a variable before there are tools", true, func() { settings = append(settings, "NODE_OPTIONS=--no-warnings") })
	step("a proxy", true, func() { settings = append(settings, "http_proxy=http://127.0.0.1:1") })
	step("a setting", true, func() { settings = append(settings, "CUTROOM_LOG_LEVEL=debug") })
	step("a tool", true, func() { write(".tools/node/made-of", "1\n") })
	step("another version of a tool", true, func() { write(".tools/node/made-of", "2\n") })
	step("a source", true, func() { write("server/server.go", "package server // changed\n") })
	step("a new file", true, func() { write("server/testdata/page.js", "1\n") })
	step("a script that may be run", true, func() {
		if err := os.Chmod(filepath.Join(root, "scripts", "run.sh"), 0o755); err != nil {
			t.Fatal(err)
		}
	})
	step("a file that is gone", true, func() {
		if err := os.Remove(filepath.Join(root, "server", "testdata", "page.js")); err != nil {
			t.Fatal(err)
		}
	})
	step("a test", false, func() { write("server/server_test.go", "package server\n") })
	step("documentation", false, func() { write("docs/contract/budgets.md", "# Server\n") })
	step("a folder that is left out", false, func() { write("bench/bench.go", "package bench\n") })
}
