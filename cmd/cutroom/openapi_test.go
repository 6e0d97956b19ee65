package main_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"cutroom/shared/testkit/servertest"
)

func pythonProgram(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "..", ".tools", "python", "bin", name))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%s is missing: run scripts/install-test-tools.sh", name)
	}
	return path
}

// smallCatalog makes results so small and short that they take almost no time.
func smallCatalog(t *testing.T) string {
	t.Helper()
	return save(t, bytes.ReplaceAll(servertest.SmallResults(defaultCatalog(t)), []byte("duration: 5s"),
		[]byte("duration: 200ms")))
}

// The document is valid under the OpenAPI 3.1 meta-schema, and all its references resolve.
func TestOpenAPIIsValid(t *testing.T) {
	t.Parallel()
	server := start(t, t.TempDir())
	answer, err := server.Client().Get(bounded(t), "/openapi.json")
	if err != nil || answer.Status != 200 {
		t.Fatalf("status %d, %v", answer.Status, err)
	}
	for _, document := range []string{save(t, answer.Body), writtenDocument(t)} {
		out, err := exec.CommandContext(bounded(t), pythonProgram(t, "openapi-spec-validator"), "--schema", "3.1",
			document).CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", document, err, out)
		}
	}
}

// A fuzzer that knows only the document finds no 5xx, no undocumented status or body, no operation
// that accepts a wrong key, and no operation that rejects valid requests or accepts invalid ones.
func TestSchemaFuzzerFindsNoError(t *testing.T) {
	t.Parallel()
	server := start(t, t.TempDir(), "CUTROOM_CATALOG="+smallCatalog(t), "CUTROOM_WORKERS=1")
	// Exclude job events, whose streams last until the job has ended, and the gateway, which is a separate server.
	fuzz(t, server, "--exclude-path-regex",
		"^/v1/generate/|/events$|^/v1/(videos|images/|audio/|responses)|^/v1/((chat/)?completions|"+
			"messages(/count_tokens)?|embeddings|rerank|score)$|"+
			"^/v1/models(/[{]model[}])?$|^/v1/usage$|^/v1/batches|^/v1/files/[{]file_id[}]/content$")
}

// These calls wait for their results. They use a separate server, so that they do not queue behind many jobs.
func TestSchemaFuzzerFindsNoErrorInWaitingCalls(t *testing.T) {
	t.Parallel()
	server := start(t, t.TempDir(), "CUTROOM_CATALOG="+smallCatalog(t), "CUTROOM_WORKERS=2")
	fuzz(t, server, "--include-path-regex", "^/v1/generate/", "--phases", "fuzzing")
}

func fuzz(t *testing.T, server *servertest.Server, selection ...string) {
	t.Helper()
	settings, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	ctx := steps(t)
	command := exec.CommandContext(ctx, pythonProgram(t, "schemathesis"), append([]string{
		"--no-color", "--config-file", filepath.Join(settings, "schemathesis.toml"), "run", server.URL() + "/openapi.json",
		"--url", server.URL(),
	}, selection...)...)
	// Otherwise the fuzzer's run would be stored in this folder and influence the next run.
	command.Dir = t.TempDir()
	command.Env = append(os.Environ(), "CUTROOM_API_KEY="+servertest.Key, "PYTHONPATH="+settings,
		"PYTHONDONTWRITEBYTECODE=1",
		"VIDEO_SAMPLES="+save(t, fixtures.tiny)+string(os.PathListSeparator)+save(t, fixtures.tall),
		"IMAGE_SAMPLES="+save(t, fixtures.picture), "MODEL_NAMES=gen-2.5,gen-latest")
	out, err := command.CombinedOutput()
	if _, summary, found := strings.Cut(string(out), "= SUMMARY ="); found {
		t.Log(strings.Trim(summary, "=\n"))
	}
	if err != nil {
		t.Errorf("%v, %v\n%s", err, context.Cause(ctx), out)
	}
}
