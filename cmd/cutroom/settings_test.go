package main_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"cutroom/shared/testkit/servertest"
)

// The server prints a single line that contains the setting and the reason.
func TestInvalidSettingsAreNamed(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	catalog := string(defaultCatalog(t))

	for _, c := range []struct {
		name, setting string
		// The line must contain the setting's name and the strings in says.
		says []string
	}{
		{"no address", "CUTROOM_ADDR=here", []string{"here"}},
		{"an empty address", "CUTROOM_ADDR=", []string{"empty"}},
		{"a port that is too large", "CUTROOM_ADDR=127.0.0.1:70000", []string{"70000"}},
		{"a trusted proxy's host name", "CUTROOM_TRUSTED_PROXIES=proxy.internal", []string{"proxy.internal", "10.1.0.0/16"}},
		{"a port in use", "CUTROOM_ADDR=" + taken.Addr().String(),
			[]string{taken.Addr().String() + " is in use", "another address"}},
		{"an empty inference address", "CUTROOM_INFERENCE_ADDR=", []string{"empty"}},
		{"an inference port in use", "CUTROOM_INFERENCE_ADDR=" + taken.Addr().String(),
			[]string{taken.Addr().String() + " is in use", "another address"}},
		{"an invalid public URL", "CUTROOM_PUBLIC_INFERENCE_URL=llm.example.com",
			[]string{"llm.example.com", "https://"}},
		{"no data folder", "CUTROOM_DATA=", []string{"empty"}},
		{"a file as data folder", "CUTROOM_DATA=" + write("file", ""), []string{"file"}},
		{"a path as family", "CUTROOM_FAMILY=a/b", []string{`"a/b"`, "letters"}},
		{"an empty family", "CUTROOM_FAMILY=", []string{"letters"}},
		{"a short key", "CUTROOM_DEV_KEY=ck_short", []string{"8 to 128"}},
		{"another service's key", "CUTROOM_DEV_KEY=sk_0123456789", []string{"ck_"}},
		{"a short secret", "CUTROOM_SECRET=guess", []string{"16"}},
		{"a word as upload limit", "CUTROOM_MAX_UPLOAD=huge", []string{"huge", "512MiB"}},
		{"a zero upload limit", "CUTROOM_MAX_UPLOAD=0", []string{`"0"`}},
		{"a missing catalog", "CUTROOM_CATALOG=" + filepath.Join(folder, "none.yaml"), []string{"none.yaml"}},
		{"a catalog with a typo", "CUTROOM_CATALOG=" +
			write("typo.yaml", strings.Replace(catalog, "fps: 25", "fsp: 25", 1)), []string{"typo.yaml", "fsp"}},
		{"a catalog with a duplicate name", "CUTROOM_CATALOG=" +
			write("twice.yaml", strings.Replace(catalog, "$family-2.1", "$family-2.5", 1)),
			[]string{"twice.yaml", "line", "gen-2.5"}},
		{"missing tiers", "CUTROOM_TIERS=" + filepath.Join(folder, "none.yaml"), []string{"none.yaml"}},
		{"tiers without the default", "CUTROOM_TIERS=" + write("tiers.yaml", "gold: {pending_jobs: 1}\n"),
			[]string{"tiers.yaml", "default"}},
		{"a word as workers", "CUTROOM_WORKERS=many", []string{"many"}},
		{"too many workers", "CUTROOM_WORKERS=257", []string{"257"}},
		{"an origin with a path", "CUTROOM_CORS_ORIGINS=https://a.example,https://b.example/app",
			[]string{"https://b.example/app"}},
		{"an enhancer without a model", "CUTROOM_ENHANCE_URL=http://localhost:8081", []string{"CUTROOM_ENHANCE_MODEL"}},
		{"an enhancer's key without an enhancer", "CUTROOM_ENHANCE_KEY=secret", []string{"CUTROOM_ENHANCE_URL"}},
		{"an unknown log level", "CUTROOM_LOG_LEVEL=loud", []string{"loud"}},
		{"an unknown live engine", "CUTROOM_LIVE_ENGINE=magic", []string{"magic", "preview"}},
		{"live video with an OpenAI-compatible server", "CUTROOM_LIVE_ENGINE=openai:http://127.0.0.1:1", []string{"live"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			settings := []string{"CUTROOM_ADDR=127.0.0.1:0", "CUTROOM_INFERENCE_ADDR=127.0.0.1:0",
				"CUTROOM_DATA=" + filepath.Join(t.TempDir(), "data"), c.setting}
			startFails(t, settings, append(c.says, strings.SplitN(c.setting, "=", 2)[0])...)
		})
	}
}

func TestFlagsOverrideTheEnvironment(t *testing.T) {
	help, err := program.Run(bounded(t), nil, "dev", "--help")
	if err != nil || help.ExitCode != 0 || help.Stderr != "" {
		t.Fatalf("%+v, %v", help, err)
	}
	for flag, setting := range map[string]string{
		"--addr": "CUTROOM_ADDR", "--data": "CUTROOM_DATA", "--family": "CUTROOM_FAMILY",
		"--dev-key": "CUTROOM_DEV_KEY", "--secret": "CUTROOM_SECRET",
		"--max-upload": "CUTROOM_MAX_UPLOAD", "--catalog": "CUTROOM_CATALOG", "--tiers": "CUTROOM_TIERS",
		"--workers": "CUTROOM_WORKERS", "--engine": "CUTROOM_ENGINE", "--engine-key": "CUTROOM_ENGINE_KEY",
		"--live-engine":    "CUTROOM_LIVE_ENGINE",
		"--inference-addr": "CUTROOM_INFERENCE_ADDR", "--metrics-key": "CUTROOM_METRICS_KEY",
		"--public-inference-url": "CUTROOM_PUBLIC_INFERENCE_URL",
		"--log-level":            "CUTROOM_LOG_LEVEL",
	} {
		if !strings.Contains(help.Stdout, flag) || !strings.Contains(help.Stdout, setting) {
			t.Errorf("the help does not mention %s and %s", flag, setting)
		}
	}
	for _, address := range []string{`--addr="127.0.0.1:8080"`, `--inference-addr="127.0.0.1:8081"`} {
		if !strings.Contains(help.Stdout, address) {
			t.Errorf("the default must be local: %s is missing in\n%s", address, help.Stdout)
		}
	}
	ended, err := program.Run(bounded(t), []string{"CUTROOM_DATA=" + t.TempDir(), "CUTROOM_WORKERS=1"}, "dev",
		"--workers=-1")
	if err != nil || ended.ExitCode != 2 || !strings.Contains(ended.Stderr, "-1") {
		t.Errorf("a wrong flag and a valid variable: %+v, %v", ended, err)
	}
}

// The server warns about a weak key if other machines can reach it.
func TestServerReportsWhoCanReachIt(t *testing.T) {
	const strong = "ck_Zx81kQpR40sTnVb7mLw2"
	for name, c := range map[string]struct {
		settings   []string
		open, warn bool
	}{
		"this machine":          {[]string{"CUTROOM_DEV_KEY=ck_password"}, false, false},
		"the network":           {[]string{"CUTROOM_ADDR=:0", "CUTROOM_DEV_KEY=" + strong}, true, false},
		"the gateway's network": {[]string{"CUTROOM_INFERENCE_ADDR=:0", "CUTROOM_DEV_KEY=ck_password"}, true, true},
		"a key of one letter":   {[]string{"CUTROOM_ADDR=:0", "CUTROOM_DEV_KEY=ck_aaaaaaaaaaaaaaaaaaaaaaaa"}, true, true},
		"a key that is made":    {[]string{"CUTROOM_ADDR=:0", "CUTROOM_DEV_KEY="}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := start(t, t.TempDir(), c.settings...)
			if open := strings.Contains(server.Printed(), "other machines can reach it"); open != c.open ||
				open == strings.Contains(server.Printed(), "only this machine") {
				t.Errorf("the welcome is\n%s", server.Printed())
			}
			if warned := strings.Contains(server.Log(), "CUTROOM_DEV_KEY can be guessed"); warned != c.warn {
				t.Errorf("warned = %t, want %t\n%s", warned, c.warn, server.Log())
			}
		})
	}
}

// The console calls the gateway at its public URL, because there may be a proxy in front of it.
func TestConsoleUsesThePublicURL(t *testing.T) {
	t.Parallel()
	server := start(t, t.TempDir(), "CUTROOM_PUBLIC_INFERENCE_URL=https://llm.example.com/one")
	answer, err := server.Client().Get(bounded(t), "/console/config.json")
	if err != nil || !strings.Contains(string(answer.Body), `"inference_url":"https://llm.example.com/one"`) {
		t.Errorf("the console's settings are %s, %v", answer.Body, err)
	}
	if policy := answer.Header.Get("Content-Security-Policy"); !strings.Contains(policy,
		"connect-src 'self' https://llm.example.com;") {
		t.Errorf("the page may call %q", policy)
	}
}

// startFails checks that the server does not start. It must exit with code 1, or 2 for an invalid
// setting, and print one line on stderr that contains all the given strings.
func startFails(t *testing.T, settings []string, says ...string) {
	t.Helper()
	ended, err := program.Run(bounded(t), settings, "dev")
	if err != nil {
		t.Fatal(err)
	}
	if ended.ExitCode < 1 || ended.ExitCode > 2 || ended.Stdout != "" || strings.Count(ended.Stderr, "\n") != 1 {
		t.Errorf("exit code %d, stdout %q, stderr %q; want 1 or 2, nothing, one line", ended.ExitCode, ended.Stdout,
			ended.Stderr)
	}
	for _, word := range says {
		if !strings.Contains(ended.Stderr, word) {
			t.Errorf("%q does not contain %q", ended.Stderr, word)
		}
	}
}

func defaultCatalog(t *testing.T) []byte {
	t.Helper()
	catalog, err := os.ReadFile(catalogPath)
	if err != nil {
		t.Fatal(err)
	}
	return catalog
}

func TestMissingFFmpegIsNamed(t *testing.T) {
	startFails(t, []string{"CUTROOM_ADDR=127.0.0.1:0", "CUTROOM_DATA=" + t.TempDir(), "PATH=" + t.TempDir()}, "PATH",
		"install")
}

func TestFamilyIsConfigurable(t *testing.T) {
	t.Parallel()
	ctx := steps(t)
	client := start(t, t.TempDir(), "CUTROOM_FAMILY=acme").Client()
	form := func() servertest.Form {
		return servertest.Form{servertest.File("data", "picture.png", fixtures.picture),
			servertest.Text("prompt", "golden hour")}
	}
	job, err := client.Submit(ctx, "acme-image-latest", form())
	if err != nil {
		t.Fatal(err)
	}
	if job, err = client.Await(bounded(t), job.ID, nil); err != nil || job.Status != "completed" || job.Model != "acme-image-2" {
		t.Errorf("%+v, %v", job, err)
	}
	for _, name := range []string{"gen-image-2", "gen-image-latest", "acme", "acme-"} {
		if _, err := client.Submit(ctx, name, form()); !hasStatus(err, 404) {
			t.Errorf("%s: %v, want status 404", name, err)
		}
	}
}

func TestWelcomeCommandsWork(t *testing.T) {
	t.Parallel()
	ctx := steps(t)
	server := start(t, t.TempDir())
	client := server.Client()
	folder := t.TempDir()
	var lines []string
	for line := range strings.Lines(server.Printed()) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "curl ") {
			lines = append(lines, line)
		}
	}
	if len(lines) != 5 {
		t.Fatalf("%d curl lines in %s", len(lines), server.Printed())
	}
	paste := func(line, id string) string {
		t.Helper()
		shell := exec.CommandContext(ctx, "sh", "-c", strings.ReplaceAll(line, "JOB_ID", id)+" -f")
		shell.Dir = folder
		shell.Env = append(os.Environ(), "NO_PROXY=*", "CUTROOM_DEV_KEY="+servertest.Key)
		out, err := shell.Output()
		if err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
		return string(out)
	}
	paste(lines[0], "") // this line saves the sample
	_, id, found := strings.Cut(paste(lines[1], ""), `"job_id":"`)
	id, _, _ = strings.Cut(id, `"`)
	if !found || !strings.HasPrefix(id, "job_") {
		t.Fatalf("no job id in the response: %q", id)
	}
	if state := paste(lines[2], id); !strings.Contains(state, id) || !strings.Contains(state, `"progress"`) {
		t.Errorf("the third line gave %s", state)
	}
	if job, err := client.Await(bounded(t), id, nil); err != nil || job.Status != "completed" {
		t.Fatalf("%+v, %v", job, err)
	}
	if chat := paste(lines[4], ""); !strings.Contains(chat, `"chat.completion"`) ||
		!strings.Contains(chat, "not a language model") {
		t.Errorf("the chat gave %s", chat)
	}
	paste(lines[3], id)
	content, err := os.ReadFile(filepath.Join(folder, "edited.mp4"))
	if err != nil {
		t.Fatal(err)
	}
	checkVideo(t, content, video{64, 36, 20, 4, false}) // the size of results in these tests
}
