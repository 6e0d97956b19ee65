// Package clienttest builds the Python and TypeScript client packages the way make clients does,
// and uses them with a server on this machine.
package clienttest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

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

func root(t *testing.T, path ...string) string {
	t.Helper()
	found, err := filepath.Abs(filepath.Join(append([]string{"..", "..", ".."}, path...)...))
	if err == nil {
		_, err = os.Stat(found)
	}
	if err != nil {
		t.Fatalf("%v: run scripts/install-test-tools.sh", err)
	}
	return found
}

type workshop struct {
	server *servertest.Server
	folder string
}

func TestClientPackagesWork(t *testing.T) {
	server, err := servertest.Program(program).Start(bounded(t), t.TempDir(), "CUTROOM_CATALOG="+smallCatalog(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Kill)
	w := workshop{server, t.TempDir()}
	// The packages are built from the document that this server serves.
	w.run(t, root(t, "scripts", "clients.sh"), nil, w.folder, server.URL()+"/openapi.json")
	for _, kept := range []string{"cutroom-0.1.0-py3-none-any.whl", "cutroom-0.1.0.tgz"} {
		if _, err := os.Stat(filepath.Join(w.folder, kept)); err != nil {
			t.Error(err)
		}
	}
	for name, test := range map[string]func(*testing.T, workshop){
		"python": python, "typescript": typeScript, "agent": agent,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, w)
		})
	}
}

func python(t *testing.T, w workshop) {
	bin := root(t, ".tools", "clients", "bin")
	installed := t.TempDir()
	interpreter := filepath.Join(bin, "python")
	w.run(t, root(t, ".tools", "pip", "bin", "pip"), nil, "--python", interpreter, "install", "--quiet",
		"--disable-pip-version-check", "--no-deps", "--target", installed,
		filepath.Join(w.folder, "cutroom-0.1.0-py3-none-any.whl"))
	environment := []string{"PYTHONPATH=" + installed, "PYTHONDONTWRITEBYTECODE=1"}
	trouble := newTrouble(t, w.server)
	if out := w.run(t, interpreter, append(environment, "CUTROOM_URL="+trouble.URL), root(t,
		"cmd/cutroom/clienttest/testdata/use.py"), w.clip(t), "7"); out != "python: ok\n" {
		t.Errorf("it printed %q", out)
	}
	trouble.wasOvercome(t)
	examples := root(t, "clients", "python", "examples")
	output := filepath.Join(t.TempDir(), "edited.mp4")
	if out := w.run(t, interpreter, environment, filepath.Join(examples, "edit.py"), w.clip(t), output, "gen-2.1",
		"winter"); !strings.HasSuffix(out, "completed 100%\n"+output+"\n") {
		t.Errorf("edit.py printed %q", out)
	}
	if out := w.run(t, root(t, ".tools", "python", "bin", "python"), environment, filepath.Join(examples, "chat.py"),
		"hello there"); !strings.Contains(out, "“hello there”") {
		t.Errorf("chat.py printed %q", out)
	}
	hasExamples(t, "python")
	hasOneTypeForEachName(t, filepath.Join(installed, "cutroom", "generated", "models"))
	w.run(t, filepath.Join(bin, "ruff"), nil, "check", "--quiet", "--no-cache", root(t, "clients", "python"))
	w.run(t, filepath.Join(bin, "ruff"), nil, "format", "--check", "--quiet", "--no-cache", root(t, "clients", "python"))
}

func typeScript(t *testing.T, w workshop) {
	folder := t.TempDir()
	modules := filepath.Join(folder, "node_modules")
	if err := os.MkdirAll(modules, 0o755); err != nil {
		t.Fatal(err)
	}
	w.run(t, "tar", nil, "-xzf", filepath.Join(w.folder, "cutroom-0.1.0.tgz"), "-C", modules)
	for to, from := range map[string]string{
		"cutroom":       filepath.Join(modules, "package"),
		"@noble":        root(t, ".tools", "typescript", "node_modules", "@noble"),
		"openapi-fetch": root(t, ".tools", "typescript", "node_modules", "openapi-fetch"),
		"openai":        root(t, ".tools", "node", "node_modules", "openai"),
	} {
		if err := os.Symlink(from, filepath.Join(modules, to)); err != nil {
			t.Fatal(err)
		}
	}
	node := root(t, ".tools", "node", "node_modules", ".bin", "node")
	run := func(url, program string, arguments ...string) string {
		copied := filepath.Join(folder, filepath.Base(program))
		text, err := os.ReadFile(program)
		if err == nil {
			err = os.WriteFile(copied, text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		environment := []string{"CUTROOM_URL=" + url, "NODE_NO_WARNINGS=1"}
		return w.run(t, node, environment, append([]string{"--preserve-symlinks", copied}, arguments...)...)
	}
	trouble := newTrouble(t, w.server)
	if out := run(trouble.URL, root(t, "cmd/cutroom/clienttest/testdata/use.mjs"), w.clip(t),
		"8"); out != "typescript: ok\n" {
		t.Errorf("it printed %q", out)
	}
	trouble.wasOvercome(t)
	examples := root(t, "clients", "typescript", "examples")
	output := filepath.Join(t.TempDir(), "edited.mp4")
	if out := run(w.server.URL(), filepath.Join(examples, "edit.mjs"), w.clip(t), output, "gen-2.1",
		"winter"); !strings.Contains(out, "completed 100%\n"+output+" by gen-2.1, seed ") {
		t.Errorf("edit.mjs printed %q", out)
	}
	if out := run(w.server.URL(), filepath.Join(examples, "chat.mjs"), "hello there"); !strings.Contains(out,
		"“hello there”") {
		t.Errorf("chat.mjs printed %q", out)
	}
	hasExamples(t, "typescript")
}

func agent(t *testing.T, w workshop) {
	folder := t.TempDir()
	picture, err := os.ReadFile(root(t, "testdata", "reference.jpg"))
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, "picture.jpg"), picture, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if out := w.run(t, root(t, ".tools", "clients", "bin", "python"), []string{"PYTHONDONTWRITEBYTECODE=1"}, root(t,
		"cmd/cutroom/clienttest/testdata/agent.py"), program, folder, "picture.jpg"); out != "agent: ok\n" {
		t.Errorf("it printed %q", out)
	}
}

// hasExamples checks that a package's README contains its examples verbatim.
func hasExamples(t *testing.T, name string) {
	t.Helper()
	readme, err := os.ReadFile(root(t, "clients", name, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	examples, _ := filepath.Glob(root(t, "clients", name, "examples") + "/*")
	for _, path := range examples {
		example, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(readme), string(example)) {
			t.Errorf("the README lacks the exact text of %s: %v", path, err)
		}
	}
	if len(examples) < 2 {
		t.Errorf("found %d examples", len(examples))
	}
}

// hasOneTypeForEachName checks that no from_dict method uses one variable for both the model and a typed field. mypy
// would reject that (clients/python/generator.yaml).
func hasOneTypeForEachName(t *testing.T, models string) {
	t.Helper()
	made := regexp.MustCompile(`\n {8}(\w+) = cls\(`)
	paths, err := filepath.Glob(filepath.Join(models, "*.py"))
	if err != nil || len(paths) < 20 {
		t.Fatalf("found %d models, %v", len(paths), err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		found := made.FindSubmatch(text)
		if found == nil {
			continue
		}
		typed := regexp.MustCompile(`\n {8}` + string(found[1]) + `(: | = \[| = cast\()`)
		if typed.Match(text) {
			t.Errorf("%s has a field with the name of its module: rename the field in generator.yaml", filepath.Base(path))
		}
	}
}

func (w workshop) clip(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "clip.mp4")
	out, err := exec.CommandContext(bounded(t), "ffmpeg", "-v", "error", "-f", "lavfi", "-i",
		"testsrc=size=64x36:rate=10:duration=1", "-pix_fmt", "yuv420p", path).CombinedOutput()
	if err != nil {
		t.Fatalf("ffmpeg: %v\n%s", err, out)
	}
	return path
}

func (w workshop) run(t *testing.T, name string, environment []string, arguments ...string) string {
	t.Helper()
	command := exec.CommandContext(bounded(t), name, arguments...)
	command.Dir = t.TempDir()
	command.Env = append(os.Environ(), "CUTROOM_URL="+w.server.URL(), "CUTROOM_INFERENCE_URL="+w.server.InferenceURL(),
		"CUTROOM_API_KEY="+servertest.Key, "NO_PROXY=*", "NO_COLOR=1", "CI=1")
	command.Env = append(command.Env, environment...)
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", filepath.Base(name), strings.Join(arguments, " "), err, out)
	}
	return string(out)
}

// smallCatalog makes results so small that they take almost no time.
func smallCatalog(t *testing.T) string {
	t.Helper()
	source, err := os.ReadFile(root(t, "shared", "domain", "catalog", "catalog.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	small := regexp.MustCompile(`(720p|480p): \d+x\d+`).ReplaceAll(source, []byte("${1}: 64x36"))
	path := filepath.Join(t.TempDir(), "catalog.yaml")
	if err := os.WriteFile(path, small, 0o600); err != nil {
		t.Fatal(fmt.Errorf("write the catalog: %w", err))
	}
	return path
}
