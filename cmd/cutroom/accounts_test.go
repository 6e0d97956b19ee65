package main_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"cutroom/shared/domain/credential"
	"cutroom/shared/testkit/servertest"
)

// budgetsWhileServing changes budgets in a running server's data folder. The server must apply the changes.
func budgetsWhileServing(t *testing.T, data string, server *servertest.Server, key, secret string) {
	t.Helper()
	ctx := steps(t)
	budgets := func(code int, args ...string) string {
		t.Helper()
		ended, err := program.Run(ctx, []string{"CUTROOM_DATA=" + data}, append([]string{"budgets"}, args...)...)
		if err != nil || ended.ExitCode != code {
			t.Fatalf("budgets %q: %+v, %v", args, ended, err)
		}
		return ended.Stdout
	}
	of := []string{"--account", "acme", "--key", key, "--period", "month", "--unit", "tokens"}
	budgets(0, append([]string{"set", "--limit", "7"}, of...)...)
	budgets(1, "set", "--account", "acme", "--key", "key_unknown", "--period", "day", "--limit", "1")
	budgets(1, "set", "--account", "acme", "--period", "day", "--limit", "1e3")
	if listed := budgets(0, "list", "--account", "acme", "--json"); !strings.Contains(listed,
		`"key":"`+key+`","period":"month","unit":"tokens","limit":7,"used":0,"remaining":7`) {
		t.Errorf("budgets list printed %s", listed)
	}
	call := func() (int, string) {
		t.Helper()
		const body = `{"model":"cutroom-echo","max_tokens":5,"messages":[{"role":"user","content":"hi"}]}`
		answer, err := (&servertest.Client{URL: server.InferenceURL()}).Call(ctx, "POST", "/v1/chat/completions",
			strings.NewReader(body), int64(len(body)), "Content-Type", "application/json", "Authorization", "Bearer "+secret)
		if err != nil {
			t.Fatal(err)
		}
		return answer.Status, string(answer.Body)
	}
	if status, body := call(); status != 429 || !strings.Contains(body, "insufficient_quota") {
		t.Errorf("over a budget: %d %s", status, body)
	}
	budgets(0, append([]string{"delete"}, of...)...)
	budgets(1, append([]string{"delete"}, of...)...)
}

func TestKeysChangeWhileServing(t *testing.T) {
	t.Parallel()
	ctx, data := steps(t), t.TempDir()
	server := start(t, data)
	keys := func(args ...string) servertest.Ended {
		t.Helper()
		ended, err := program.Run(ctx, []string{"CUTROOM_DATA=" + data}, append([]string{"keys"}, args...)...)
		if err != nil {
			t.Fatal(err)
		}
		return ended
	}
	var made struct{ ID, Key, Account, Tier, State, Label string }
	created := keys("create", "--account", "acme", "--label", "continuous integration", "--json")
	if err := json.Unmarshal([]byte(created.Stdout), &made); err != nil || created.ExitCode != 0 {
		t.Fatalf("%v: %+v", err, created)
	}
	if made.Account != "acme" || made.Tier != "default" || made.State != "active" ||
		made.Label != "continuous integration" || !strings.HasPrefix(made.Key, "ck_") {
		t.Errorf("made %+v", made)
	}
	client := &servertest.Client{URL: server.URL(), Key: made.Key}
	status := func() int {
		t.Helper()
		answer, err := client.Get(ctx, "/v1/jobs/job_unknown")
		if err != nil {
			t.Fatal(err)
		}
		return answer.Status
	}
	if got := status(); got != 404 {
		t.Errorf("a new key: status %d for an unknown job, want 404", got)
	}
	var admin struct {
		Key   string
		Admin bool
	}
	if err := json.Unmarshal([]byte(keys("create", "--account", "acme", "--admin", "--json").Stdout),
		&admin); err != nil || !admin.Admin {
		t.Errorf("an admin key is made as %+v, %v", admin, err)
	}
	for who, want := range map[string]int{made.Key: 403, admin.Key: 200, servertest.Key: 200} {
		if answer, err := (&servertest.Client{URL: server.URL(), Key: who}).Get(ctx, "/v1/keys"); err != nil ||
			answer.Status != want {
			t.Errorf("the keys of an account: status %d, want %d, %v", answer.Status, want, err)
		}
	}
	var limited struct {
		Key            string
		ExpiresAt      time.Time `json:"expires_at"`
		Models, Routes []string
	}
	if err := json.Unmarshal([]byte(keys("create", "--account", "acme", "--json", "--expires", "90d", "--models",
		"gen-latest", "--routes", "jobs,files").Stdout), &limited); err != nil || len(limited.Models) != 1 ||
		len(limited.Routes) != 2 || time.Until(limited.ExpiresAt).Round(24*time.Hour) != 90*24*time.Hour {
		t.Errorf("a limited key is made as %+v, %v", limited, err)
	}
	for path, want := range map[string]int{"/v1/files": 200, "/v1/realtime/quota": 403} {
		if answer, err := (&servertest.Client{URL: server.URL(), Key: limited.Key}).Get(ctx, path); err != nil ||
			answer.Status != want {
			t.Errorf("%s by a limited key: status %d, want %d, %v", path, answer.Status, want, err)
		}
	}
	budgetsWhileServing(t, data, server, made.ID, made.Key)
	listed := keys("list", "--account", "acme")
	if listed.ExitCode != 0 || !strings.Contains(listed.Stdout, made.ID) || !strings.Contains(listed.Stdout, "active") ||
		!strings.Contains(listed.Stdout, "admin") || strings.Contains(listed.Stdout, made.Key) {
		t.Errorf("keys list printed %+v; want the key's id and state, and not the key", listed)
	}

	if revoked := keys("revoke", made.ID, "--json"); revoked.ExitCode != 0 || !strings.Contains(revoked.Stdout, made.ID) ||
		!strings.Contains(revoked.Stdout, `"state":"revoked"`) {
		t.Errorf("keys revoke gave %+v", revoked)
	}
	eventually(t, "a revoked key is rejected", func() bool { return status() == 401 })
	if listed := keys("list", "--account", "acme"); !strings.Contains(listed.Stdout, "revoked") {
		t.Errorf("keys list printed %s after the revocation", listed.Stdout)
	}
	if ended := keys("create", "--account", "acme", "--tier", "platinum"); !strings.Contains(ended.Stderr,
		"default, dev; set --tiers") {
		t.Errorf("an unknown tier: %+v; want the names of the tiers, and the flag for others", ended)
	}
	for name, c := range map[string]struct {
		code int
		args []string
	}{
		"an unknown key":      {1, []string{"revoke", "key_unknown"}},
		"no account":          {2, []string{"create"}},
		"a malformed account": {1, []string{"create", "--account", "a/b"}},
		"an unknown tier":     {1, []string{"create", "--account", "acme", "--tier", "platinum"}},
		"a time in the past":  {1, []string{"create", "--account", "acme", "--expires", "2020-01-31"}},
		"an unknown model":    {1, []string{"create", "--account", "acme", "--models", "gen-2.5,gen-9"}},
		"an unknown route":    {1, []string{"create", "--account", "acme", "--routes", "v1"}},
	} {
		if ended := keys(c.args...); ended.ExitCode != c.code || ended.Stdout != "" ||
			strings.Count(ended.Stderr, "\n") != 1 {
			t.Errorf("%s: %+v; want exit code %d and one line", name, ended, c.code)
		}
	}
}

// A server without a configured key generates one, saves it, and prints its path. If the key is
// revoked, the server replaces it.
func TestDevelopmentKeyIsGeneratedAndReplaced(t *testing.T) {
	t.Parallel()
	ctx, data := steps(t), t.TempDir()
	printed := func() string {
		t.Helper()
		server := start(t, data, "CUTROOM_DEV_KEY=")
		content, err := os.ReadFile(filepath.Join(data, "dev-key"))
		if err != nil {
			t.Fatal(err)
		}
		key := strings.TrimSpace(string(content))
		// If the key were printed, it would stay in logs.
		if printed := server.Printed(); strings.Contains(printed, key) || strings.Contains(server.Log(), key) ||
			!strings.Contains(printed, `-H "x-api-key: $(cat '`+filepath.Join(data, "dev-key")+`')"`) {
			t.Errorf("the welcome is\n%s", printed)
		}
		client := &servertest.Client{URL: server.URL(), Key: key}
		if _, err := client.Job(ctx, "job_unknown"); !hasStatus(err, 404) {
			t.Errorf("the printed key %q: %v, want status 404 for an unknown job", key, err)
		}
		stop(t, server)
		return key
	}
	first := printed()
	if again := printed(); again != first {
		t.Errorf("the key changed from %s to %s", first, again)
	}
	settings := []string{"CUTROOM_DATA=" + data, "CUTROOM_ADDR=127.0.0.1:0"}
	listed, err := program.Run(ctx, settings, "keys", "list", "--json")
	if err != nil {
		t.Fatal(err)
	}
	var key struct{ ID, Account string }
	if err := json.Unmarshal([]byte(listed.Stdout), &key); err != nil || key.Account != "dev" {
		t.Fatalf("keys list printed %q, %v", listed.Stdout, err)
	}
	if revoked, err := program.Run(ctx, settings, "keys", "revoke", key.ID); err != nil || revoked.ExitCode != 0 {
		t.Fatalf("%+v, %v", revoked, err)
	}
	if next := printed(); next == first {
		t.Error("the server still offers the revoked key")
	}
	startFails(t, append(settings, "CUTROOM_DEV_KEY="+first), "CUTROOM_DEV_KEY", "revoked")

	made, err := program.Run(ctx, settings, "keys", "create", "--account", "acme")
	if err != nil || made.ExitCode != 0 {
		t.Fatalf("%+v, %v", made, err)
	}
	startFails(t, append(settings, "CUTROOM_DEV_KEY="+strings.TrimSpace(made.Stdout)), "CUTROOM_DEV_KEY", "acme")
}

func TestImportedKeysWork(t *testing.T) {
	t.Parallel()
	ctx, from, to := bounded(t), t.TempDir(), t.TempDir()
	list := filepath.Join(t.TempDir(), "keys.jsonl")
	run := func(data string, args ...string) servertest.Ended {
		t.Helper()
		ended, err := program.Run(ctx, []string{"CUTROOM_DATA=" + data}, append([]string{"keys"}, args...)...)
		if err != nil {
			t.Fatal(err)
		}
		return ended
	}
	key := strings.TrimSpace(run(from, "create", "--account", "acme", "--routes", "files").Stdout)
	gone := strings.TrimSpace(run(from, "create", "--account", "acme").Stdout)
	if ended := run(from, "revoke", credential.KeyID(credential.HashOf(gone))); ended.ExitCode != 0 {
		t.Fatalf("revoke: %+v", ended)
	}
	exported := run(from, "export")
	if strings.Count(exported.Stdout, "\n") != 1 || strings.Contains(exported.Stdout, key) {
		t.Fatalf("keys export printed %q; want one line without the key", exported.Stdout)
	}
	if err := os.WriteFile(list, []byte(exported.Stdout), 0o600); err != nil {
		t.Fatal(err)
	}
	server := start(t, to)
	for _, want := range []string{"Added 1 keys.", "Added 0 keys."} {
		if ended := run(to, "import", list); ended.ExitCode != 0 || !strings.Contains(ended.Stderr, want) {
			t.Errorf("keys import: %+v; want %q", ended, want)
		}
	}
	for _, c := range []struct {
		key, path string
		status    int
	}{{key, "/v1/files", 200}, {key, "/v1/realtime/quota", 403}, {gone, "/v1/files", 401}} {
		answer, err := (&servertest.Client{URL: server.URL(), Key: c.key}).Get(ctx, c.path)
		if err != nil || answer.Status != c.status {
			t.Errorf("%s: status %d, %v; want %d", c.path, answer.Status, err, c.status)
		}
	}
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if ended := run(to, "import", pipe); ended.ExitCode != 1 || !strings.Contains(ended.Stderr, "not a regular file") {
		t.Errorf("import of a pipe: %+v", ended)
	}
	line, long := strings.TrimSpace(exported.Stdout), strings.Repeat("x", 129)
	for change, want := range map[string]string{
		strings.Replace(line, `"hash":"`, `"hash":"00`, 1):                          "64 hex digits",
		strings.Replace(line, `"tier":"default"`, `"tier":"none"`, 1):               "unknown tier",
		strings.Replace(line, `"account":"acme"`, `"account":"a/b"`, 1):             "account",
		strings.Replace(line, `"account":"acme"`, `"account":"other"`, 1):           "a different account",
		strings.Replace(line, `"routes":["files"]`, `"routes":["all"]`, 1):          "routes",
		strings.Replace(line, `"created_at"`, `"made_at"`, 1):                       "line 1: created_at",
		strings.Replace(line, `{`, `{"expires_at":"9999-12-31T23:59:59-23:59",`, 1): "line 1: 9999",
		strings.Replace(line, `{`, `{"label":"\u001b[2J",`, 1):                      "line 1: label",
		strings.Replace(line, `{`, `{"label":"`+long+`",`, 1):                       "line 1: label",
		strings.Replace(line, `{`, `{"models":[""],`, 1):                            "line 1: models",
		strings.Replace(line, `{`, `{"models":["`+long+`"],`, 1):                    "line 1: models",
		line + "\n{}":                            "line 2",
		line + "\n" + strings.Repeat("x", 2<<20): "line 2",
	} {
		if err := os.WriteFile(list, []byte(change), 0o600); err != nil {
			t.Fatal(err)
		}
		ended := run(to, "import", list)
		if ended.ExitCode != 1 || !strings.Contains(ended.Stderr, want) || strings.Count(ended.Stderr, "\n") != 1 {
			t.Errorf("import of %.200q: %+v; want one line with %q", change, ended, want)
		}
	}
}

// A missing folder is probably a mistyped name.
func TestListingKeysCreatesNoFolder(t *testing.T) {
	data := filepath.Join(t.TempDir(), "mistyped")
	for _, arguments := range [][]string{{"keys", "list"}, {"keys", "revoke", "key_0123456789ab"}} {
		ended, err := program.Run(bounded(t), []string{"CUTROOM_DATA=" + data}, arguments...)
		if err != nil || ended.ExitCode != 1 || !strings.Contains(ended.Stderr, "CUTROOM_DATA") {
			t.Errorf("%v: %+v, %v; want an error that names CUTROOM_DATA", arguments, ended, err)
		}
		if _, err := os.Stat(data); !os.IsNotExist(err) {
			t.Errorf("%v created the folder: %v", arguments, err)
		}
	}
}

// A deployment's keys are managed with the user's own AWS credentials.
func TestMissingAWSAccessIsReported(t *testing.T) {
	nowhere := []string{
		"HOME=" + t.TempDir(), "AWS_EC2_METADATA_DISABLED=true", "AWS_PROFILE=", "AWS_ACCESS_KEY_ID=",
		"AWS_SECRET_ACCESS_KEY=", "AWS_DEFAULT_REGION=",
		"AWS_CONFIG_FILE=" + t.TempDir() + "/config", "AWS_SHARED_CREDENTIALS_FILE=" + t.TempDir() + "/credentials",
	}
	for _, c := range []struct{ region, says string }{
		{"AWS_REGION=", "no AWS region is set: set AWS_REGION"},
		{"AWS_REGION=eu-central-1", "no AWS credentials were found: set AWS_PROFILE, or AWS_ACCESS_KEY_ID"},
	} {
		ended, err := program.Run(bounded(t), append(nowhere, c.region), "keys", "create", "--stage", "prod", "--account",
			"acme")
		if err != nil {
			t.Fatal(err)
		}
		if ended.ExitCode == 0 || !strings.Contains(ended.Stderr, c.says) || strings.Count(ended.Stderr, "\n") != 1 {
			t.Errorf("exit code %d, %q, want %q", ended.ExitCode, ended.Stderr, c.says)
		}
	}
}
