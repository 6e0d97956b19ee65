package main_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"cutroom/shared/testkit/servertest"
)

type clientWorkshop struct {
	*testing.T
	server   *servertest.Server
	folder   string
	document string
}

func newClientWorkshop(t *testing.T) *clientWorkshop {
	t.Helper()
	server := start(t, t.TempDir(), "CUTROOM_CATALOG="+smallCatalog(t), "CUTROOM_WORKERS=1")
	answer, err := server.Client().Get(bounded(t), "/openapi.json")
	if err != nil || answer.Status != http.StatusOK {
		t.Fatalf("status %d, %v", answer.Status, err)
	}
	w := &clientWorkshop{t, server, t.TempDir(), ""}
	w.document = filepath.Join(w.folder, "openapi.json")
	if err := os.WriteFile(w.document, answer.Body, 0o600); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *clientWorkshop) tool(path ...string) string {
	w.Helper()
	tool, err := filepath.Abs(filepath.Join(append([]string{"..", "..", ".tools"}, path...)...))
	if err == nil {
		_, err = os.Stat(tool)
	}
	if err != nil {
		w.Fatalf("%v: run scripts/install-test-tools.sh", err)
	}
	return tool
}

func (w *clientWorkshop) source(name string) string {
	w.Helper()
	path, err := filepath.Abs(filepath.Join("testdata", "clients", name))
	if err != nil {
		w.Fatal(err)
	}
	return path
}

func (w *clientWorkshop) run(name string, arguments ...string) string {
	w.Helper()
	command := exec.CommandContext(bounded(w.T), name, arguments...)
	command.Dir = w.folder
	command.Env = append(os.Environ(), "CUTROOM_URL="+w.server.URL(), "CUTROOM_INFERENCE_URL="+w.server.InferenceURL(),
		"CUTROOM_API_KEY="+servertest.Key, "CLIP="+save(w.T, fixtures.tiny), "PYTHONDONTWRITEBYTECODE=1", "NO_COLOR=1",
		"CI=1",
		"REDOCLY_TELEMETRY=off", "REDOCLY_SUPPRESS_UPDATE_NOTICE=true")
	out, err := command.CombinedOutput()
	if err != nil {
		w.Fatalf("%s: %v\n%s", filepath.Base(name), err, out)
	}
	return string(out)
}

func (w *clientWorkshop) node(script string, arguments ...string) string {
	w.Helper()
	return w.run(nodeProgram(w.T), append([]string{script}, arguments...)...)
}

// This client compiles in strict mode. The other two generators are covered by the tests of the client packages.
func TestGeneratedTypeScriptClientWorks(t *testing.T) {
	t.Parallel()
	w := newClientWorkshop(t)
	modules := w.tool("generators", "node_modules")
	if err := os.Symlink(modules, filepath.Join(w.folder, "node_modules")); err != nil {
		t.Fatal(err)
	}
	w.node(filepath.Join(modules, "@hey-api", "openapi-ts", "bin", "run.js"), "-i", w.document, "-o", "hey", "-c",
		"@hey-api/client-fetch", "--no-log-file")
	text, err := os.ReadFile(w.source("hey.ts"))
	if err == nil {
		err = os.WriteFile(filepath.Join(w.folder, "hey.ts"), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.folder, "node.d.ts"), []byte(nodeTypes), 0o600); err != nil {
		t.Fatal(err)
	}
	w.node(filepath.Join(modules, "typescript", "bin", "tsc"), "--outDir", "out", "--strict", "--skipLibCheck", "--target",
		"es2022",
		"--module", "commonjs", "--moduleResolution", "node10", "--lib", "es2022,dom,dom.iterable", "node.d.ts", "hey.ts")
	if out := w.node(filepath.Join("out", "hey.js")); out != "hey-api: ok\n" {
		t.Errorf("it printed %q", out)
	}
}

const nodeTypes = `
declare module "node:fs" { export function readFileSync(path: string): Uint8Array<ArrayBuffer>; }
declare const process: { env: Record<string, string | undefined>; exit(code: number): never };
declare const Buffer: { from(bytes: ArrayBuffer): { subarray(from: number, to: number): { toString(): string } } };
`

func TestOpenAPIDocumentPassesLint(t *testing.T) {
	t.Parallel()
	w := newClientWorkshop(t)
	// Lint the source document too, not only the served one.
	for _, document := range []string{w.document, writtenDocument(t)} {
		w.node(w.tool("generators", "node_modules", "@redocly", "cli", "bin", "cli.js"), "lint", document, "--config",
			w.source("redocly.yaml"), "--max-problems", "50")
	}
}

type exampleDocument struct {
	Paths      map[string]map[string]json.RawMessage
	Components struct {
		Schemas map[string]struct{ Examples []any }
	}
}

func (w *clientWorkshop) parsed() (text []byte, d exampleDocument) {
	w.Helper()
	text, err := os.ReadFile(w.document)
	if err == nil {
		err = json.Unmarshal(text, &d)
	}
	if err != nil {
		w.Fatal(err)
	}
	return text, d
}

// The service must also accept the example requests.
func TestOpenAPIExamplesMatchTheirSchemas(t *testing.T) {
	t.Parallel()
	w := newClientWorkshop(t)
	text, d := w.parsed()
	whole, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	compiler.UseRegexpEngine(func(pattern string) (jsonschema.Regexp, error) {
		// JSON Schema uses JavaScript's regular expression syntax.
		compiled, err := regexp.Compile(regexp.MustCompile(`\\u([0-9a-f]{4})`).ReplaceAllString(pattern, `\x{$1}`))
		return compiled, err
	})
	if err := compiler.AddResource("openapi.json", whole); err != nil {
		t.Fatal(err)
	}
	checked := 0
	for name, schema := range d.Components.Schemas {
		for _, example := range schema.Examples {
			compiled, err := compiler.Compile("openapi.json#/components/schemas/" + name)
			if err == nil {
				err = compiled.Validate(example)
			}
			if err != nil {
				t.Errorf("the example of %s: %v", name, err)
			}
			checked++
		}
	}
	if checked < 10 {
		t.Errorf("the document has %d examples", checked)
	}
	for _, c := range []struct{ path, schema string }{
		{"/v1/client/tokens", "TokenRequest"}, {"/v1/keys", "KeyRequest"}, {"/v1/models/resolve", "ResolveRequest"},
		{"/v1/files", "Announcement"},
		{"/v1/chat/completions", "ChatRequest"}, {"/v1/completions", "CompletionRequest"},
		{"/v1/responses", "ResponsesRequest"}, {"/v1/messages", "MessagesRequest"},
		{"/v1/messages/count_tokens", "CountTokensRequest"}, {"/v1/embeddings", "EmbeddingsRequest"},
	} {
		body, err := json.Marshal(d.Components.Schemas[c.schema].Examples[0])
		if err != nil {
			t.Fatal(err)
		}
		base := w.server.InferenceURL()
		switch c.path {
		case "/v1/client/tokens", "/v1/keys", "/v1/models/resolve", "/v1/files":
			base = w.server.URL()
		}
		request, err := http.NewRequestWithContext(bounded(t), http.MethodPost, base+c.path, bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("x-api-key", servertest.Key)
		request.Header.Set("Authorization", "Bearer "+servertest.Key)
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			t.Errorf("POST %s with its example: %d", c.path, answer.StatusCode)
		}
	}
}

func TestGatewayRespondsAtDocumentedURL(t *testing.T) {
	t.Parallel()
	w := newClientWorkshop(t)
	_, d := w.parsed()
	found := 0
	for path, item := range d.Paths {
		var servers []struct{ URL string }
		if item["servers"] == nil {
			continue
		}
		if err := json.Unmarshal(item["servers"], &servers); err != nil || len(servers) != 1 ||
			servers[0].URL != w.server.InferenceURL() {
			t.Errorf("%s is at %v, %v; want %s", path, servers, err, w.server.InferenceURL())
			continue
		}
		for method := range item {
			if method == "servers" {
				continue
			}
			found++
			if status := statusOf(t, strings.ToUpper(method),
				servers[0].URL+strings.ReplaceAll(path, "{model}", "cutroom-echo")); status != http.StatusUnauthorized {
				t.Errorf("%s %s without a key: %d", method, path, status)
			}
		}
	}
	if found != 30 {
		t.Errorf("the document has %d gateway operations", found)
	}
}

func statusOf(t *testing.T, method, url string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(bounded(t), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	return answer.StatusCode
}

// writtenDocument returns the path of the source document, without a deployment's overlay.
func writtenDocument(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "..", "shared", "service", "api", "openapi", "openapi.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return path
}
