package scripts_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// tool writes a program that prints a text and ends with a status, as pip-audit and
// npm do in what a test is about.
func tool(t *testing.T, folder, name, script string) string {
	t.Helper()
	path := filepath.Join(folder, name)
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// What is vulnerable, what could not be asked, and what is not served are told apart.
func TestTheAuditTellsWhatIsWrong(t *testing.T) {
	const (
		cleanPython = `echo '{"dependencies": [{"name": "one", "version": "1", "vulns": []}]}'`
		cleanNPM    = `echo '{"vulnerabilities": {}}'`
	)
	for name, c := range map[string]struct {
		python, npm string
		strict      bool
		code        int
		says        string
	}{
		"all is well": {cleanPython, cleanNPM, true, 0, "infra: no known vulnerability"},
		"a vulnerable Python package": {
			`echo '{"dependencies": [{"name": "one", "version": "1", "vulns": [{"id": "PYSEC-1", "fix_versions": ["2"], ` +
				`"aliases": []}]}]}'; exit 1`,
			cleanNPM, false, 1, "one 1: PYSEC-1, mended in 2",
		},
		"a vulnerable package of npm": {
			cleanPython, `echo '{"vulnerabilities": {"two": {"via": [{"title": "Bad", "url": "https://a/GHSA-1"}]}}}'; exit 1`,
			false, 1, "two: Bad https://a/GHSA-1",
		},
		"PyPI is down": {`echo 'connection refused' >&2; exit 1`, cleanNPM, false, 1, "could not be asked (no vulnerability is known): connection refused"},
		"npm's registry is down": {
			cleanPython, `echo '{"message": "getaddrinfo ENOTFOUND", "error": {}}'; exit 1`, false, 1,
			"could not be asked (no vulnerability is known): getaddrinfo",
		},
		"PyPI has no answer for one": {
			`echo '{"dependencies": [{"name": "one", "version": "1", "vulns": []}, {"name": "two", "skip_reason": "not ` +
				`found"}]}'`, cleanNPM, false, 1, "no answer for two",
		},
		"a mirror of PyPI": {`echo '{"dependencies": [{"name": "one", "skip_reason": "not found"}]}'`, cleanNPM, false, 0, "PyPI serves no vulnerabilities here"},
		"a mirror of npm":  {cleanPython, `echo '{"message": "405", "statusCode": 405}'; exit 1`, false, 0, "the registry of npm serves no vulnerabilities here"},
		"a mirror, strictly": {
			cleanPython, `echo '{"message": "405", "statusCode": 405}'; exit 1`, true, 1,
			"the registry of npm serves no vulnerabilities here",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			pipAudit := tool(t, folder, "pip-audit", c.python)
			tool(t, folder, "npm", c.npm)
			audit(t, folder, pipAudit, c.strict, c.code, c.says)
		})
	}
	t.Run("no pip-audit", func(t *testing.T) {
		t.Parallel()
		folder := t.TempDir()
		audit(t, folder, filepath.Join(folder, "pip-audit"), false, 1, "missing tool: ")
	})
}

func audit(t *testing.T, folder, pipAudit string, strict bool, code int, says string) {
	t.Helper()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), "python3", "audit.py", pipAudit, root)
	command.Env = append(os.Environ(), "PATH="+folder+":"+os.Getenv("PATH"), "AUDIT_PAUSE=0", "AUDIT=")
	if strict {
		command.Env = append(command.Env, "AUDIT=strict")
	}
	said, err := command.CombinedOutput()
	if command.ProcessState == nil {
		t.Fatal(err)
	}
	if got := command.ProcessState.ExitCode(); got != code || !strings.Contains(string(said), says) {
		t.Errorf("exit code %d, want %d, with %q, of\n%s", got, code, says, said)
	}
}
