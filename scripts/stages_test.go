package scripts_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A failed test is tried again where that is asked for, and nothing else is: neither a
// second time nor what a second try can hide.
func TestTryAgain(t *testing.T) {
	const failed = "--- FAIL: TestOne (0.01s)\n    a_test.go:1: no\nFAIL\nFAIL\tcutroom/a\t0.02s\n"
	tests := map[string]struct {
		again     bool
		first     string
		passes    bool // the second time
		wantTries int
		want      bool
		unsteady  string
	}{
		"passes":              {again: true, first: "ok\tcutroom/a\t0.02s\n", wantTries: 1, want: true},
		"nobody asks":         {first: failed, passes: true, wantTries: 1},
		"by chance":           {again: true, first: failed, passes: true, wantTries: 2, want: true, unsteady: "cutroom/a TestOne\n"},
		"fails again":         {again: true, first: failed, wantTries: 2},
		"by a race":           {again: true, first: "WARNING: DATA RACE\n" + failed, passes: true, wantTries: 1},
		"by a panic":          {again: true, first: "panic: no\n" + failed, passes: true, wantTries: 1},
		"does not compile":    {again: true, first: failed + "FAIL\tcutroom/b [build failed]\n", passes: true, wantTries: 1},
		"outside of its test": {again: true, first: failed + "FAIL\nFAIL\tcutroom/b\t0.1s\n", passes: true, wantTries: 1},
		"too many":            {again: true, first: strings.Repeat("--- FAIL: TestX (0s)\n", 4) + failed, passes: true, wantTries: 1},
		"killed":              {again: true, first: "--- FAIL: TestOne (0.01s)\n", passes: true, wantTries: 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			must := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			must(os.MkdirAll(filepath.Join(root, "test-output"), 0o755))
			scripts, err := filepath.Abs(".")
			must(err)
			must(os.Symlink(scripts, filepath.Join(root, "scripts")))
			must(os.WriteFile(filepath.Join(root, "first"), []byte(test.first), 0o644))
			second := "false"
			if test.passes {
				second = "true"
			}
			status := "1"
			if strings.HasPrefix(test.first, "ok") {
				status = "0"
			}
			script := `. scripts/stages.sh
run() {
	echo "$*" >>tries
	[ "$(wc -l <tries)" -eq 1 ] || { echo "$*" | grep -q -- "-count=1 -run ^TestOne\$ cutroom/a" && ` + second + `; return; }
	cat first
	return ` + status + `
}
tested run -vet=off ./...
`
			command := exec.CommandContext(t.Context(), "sh", "-eu", "-c", script)
			command.Dir, command.Env = root, os.Environ()
			if test.again {
				command.Env = append(command.Env, "TRY_AGAIN=1")
			} else {
				command.Env = append(command.Env, "TRY_AGAIN=")
			}
			var out []byte
			out, err = command.CombinedOutput()
			if (err == nil) != test.want {
				t.Errorf("passes: %v, want %v: %s", err == nil, test.want, out)
			}
			tries, err := os.ReadFile(filepath.Join(root, "tries"))
			must(err)
			if got := strings.Count(string(tries), "\n"); got != test.wantTries {
				t.Errorf("%d tries, want %d: %s", got, test.wantTries, out)
			}
			unsteady, _ := os.ReadFile(filepath.Join(root, "test-output", "unsteady"))
			if string(unsteady) != test.unsteady {
				t.Errorf("unsteady %q, want %q", unsteady, test.unsteady)
			}
			if !strings.Contains(string(out), strings.TrimSpace(strings.Split(test.first, "\n")[0])) {
				t.Errorf("what the first try said is not told: %s", out)
			}
		})
	}
}

// A stage that passes at its second try passes, and one that fails fails all, whatever runs
// after it.
func TestInTurn(t *testing.T) {
	const failed = "--- FAIL: TestOne (0.01s)\nFAIL\nFAIL\tcutroom/a\t0.02s\n"
	for name, test := range map[string]struct {
		stages string
		want   bool
	}{
		"all pass":               {"quick quick", true},
		"one passes when again":  {"unsteady quick", true},
		"one fails":              {"broken quick", false},
		"one fails after others": {"quick unsteady broken", false},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			scripts, err := filepath.Abs(".")
			if err == nil {
				err = os.Symlink(scripts, filepath.Join(root, "scripts"))
			}
			if err == nil {
				err = os.WriteFile(filepath.Join(root, "failed"), []byte(failed), 0o600)
			}
			if err == nil {
				err = os.Mkdir(filepath.Join(root, "test-output"), 0o700)
			}
			if err != nil {
				t.Fatal(err)
			}
			command := exec.CommandContext(t.Context(), "sh", "-eu", "-c", `. scripts/stages.sh
once() { [ -e tried ] || { touch tried; cat failed; return 1; }; }
never() { cat failed; return 1; }
quick() { tested true; }
unsteady() { tested once; }
broken() { tested never; }
in_turn `+test.stages+` >log &
finished ../log $!`)
			command.Dir, command.Env = root, append(os.Environ(), "TRY_AGAIN=1")
			out, err := command.CombinedOutput()
			if (err == nil) != test.want {
				t.Errorf("passes: %v, want %v: %s", err == nil, test.want, out)
			}
			for stage := range strings.FieldsSeq(test.stages) {
				if !strings.Contains(string(out), "--- "+stage+": ") {
					t.Errorf("not told how long %s took: %s", stage, out)
				}
			}
			if strings.Contains(string(out), "Illegal") {
				t.Errorf("%s", out)
			}
		})
	}
}

// What failed is repeated at the end of all, with the first lines of each message alone.
func TestRetold(t *testing.T) {
	const long = "--- FAIL: TestOne (1.01s)\n    --- FAIL: TestOne/case (0.00s)\n        a_test.go:1: no: 1\n          2\n          3\n" +
		"          4\n          5\n          6\nFAIL\nFAIL\tcutroom/a\t0.02s\nok  \tcutroom/b\t0.01s\nFAIL\n"
	const short = "--- FAIL: TestOne (1.01s)\n    --- FAIL: TestOne/case (0.00s)\n        a_test.go:1: no: 1\n          2\n          3\n" +
		"          4\n          5\nFAIL\tcutroom/a\t0.02s\n"
	const race = "WARNING: DATA RACE\nWrite at 0x1 by goroutine 8:\n  cutroom/a.one()\n"
	for name, test := range map[string]struct {
		stages string
		again  bool
		want   string
	}{
		"nothing failed":           {stages: "passes"},
		"a test":                   {stages: "passes long passes", want: short},
		"a test that is no chance": {stages: "raced_test passes", again: true, want: race + short},
		"a test, twice":            {stages: "long", again: true, want: short + short},
		"a test by chance":         {stages: "chance", again: true},
		"what does not compile":    {stages: "compiles", want: "# cutroom/a\na.go:1:2: undefined: b\nFAIL\tcutroom/a [build failed]\n"},
		"no test":                  {stages: "words", want: "2\n3\n4\n5\n6\n"},
		"two":                      {stages: "words compiles", want: "2\n3\n4\n5\n6\n# cutroom/a\na.go:1:2: undefined: b\nFAIL\tcutroom/a [build failed]\n"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			scripts, err := filepath.Abs(".")
			if err == nil {
				err = os.Symlink(scripts, filepath.Join(root, "scripts"))
			}
			for file, text := range map[string]string{
				"long": long, "race": "==================\n" + race + "\n==================\n" + long,
				"compiles": "# cutroom/a\na.go:1:2: undefined: b\nFAIL\tcutroom/a [build failed]\nok  \tcutroom/b\t0.01s\n",
				"words":    "1\n2\n3\n4\n5\n6\n",
			} {
				if err == nil {
					err = os.WriteFile(filepath.Join(root, file), []byte(text), 0o600)
				}
			}
			if err == nil {
				err = os.Mkdir(filepath.Join(root, "test-output"), 0o700)
			}
			if err != nil {
				t.Fatal(err)
			}
			command := exec.CommandContext(t.Context(), "sh", "-eu", "-c", `. scripts/stages.sh
trap 'echo end; retold' EXIT
print_long() { cat long; return 1; }
print_race() { cat race; return 1; }
print_compiles() { cat compiles; return 1; }
print_words() { cat words; return 1; }
once() { [ -e tried ] || { touch tried; cat long; return 1; }; }
passes() { tested echo ok; }
long() { tested print_long; }
raced_test() { tested print_race; }
chance() { tested once; }
compiles() { tested print_compiles; }
words() { told print_words; }
in_turn `+test.stages)
			command.Dir, command.Env = root, append(os.Environ(), "TRY_AGAIN=")
			if test.again {
				command.Env = append(command.Env, "TRY_AGAIN=1")
			}
			out, err := command.CombinedOutput()
			if (err == nil) != (test.want == "") {
				t.Errorf("%v: %s", err, out)
			}
			_, got, _ := strings.Cut(string(out), "end\n")
			if want := test.want; want != "" && got != "--- FAILED:\n"+want || want == "" && got != "" {
				t.Errorf("at the end it says\n%s\nwant\n%s\nof\n%s", got, want, out)
			}
		})
	}
}
