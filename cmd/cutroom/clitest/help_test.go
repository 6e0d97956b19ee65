package clitest

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden help texts")

// Other tests cover the settings of the server commands.
func TestHelpMatchesGoldenTexts(t *testing.T) {
	t.Parallel()
	for _, command := range []string{
		"", "edit", "image", "t2v", "i2v", "jobs", "jobs list", "jobs show", "jobs watch", "jobs cancel", "jobs download",
		"jobs share", "jobs rm", "jobs deliveries",
		"files", "files ls", "files put", "files get", "files rm", "inspect", "chat", "models", "quota", "usage", "token",
		"webhook-secret", "mcp",
		"login", "logout", "profiles", "completion",
	} {
		name := "cutroom"
		if command != "" {
			name = strings.ReplaceAll(command, " ", "-")
		}
		t.Run(name, func(t *testing.T) {
			got := newShell(t, "COLUMNS=80").works(append(strings.Fields(command), "--help")...) + "\n"
			path := filepath.Join("testdata", "help", name+".txt")
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("the help is now\n%s\nand was\n%s", got, want)
			}
		})
	}
}

func TestNoArgumentsListCommands(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	if got, want := s.works(), s.works("--help"); got != want {
		t.Errorf("without arguments it prints %q", got)
	}
	if got := s.works("--version"); !strings.HasPrefix(got, "cutroom ") || s.works("version") != got {
		t.Errorf("its version is %q", got)
	}
	if got, want := s.works("help", "jobs", "list"), s.works("jobs", "list", "--help"); got != want {
		t.Errorf("cutroom help jobs list prints %q", got)
	}
	if got := s.works("--man"); !strings.HasPrefix(got, ".TH CUTROOM 1") {
		t.Errorf("the manual page is %.100q", got)
	}
}

// Shells also complete model names.
func TestShellsCompleteCommands(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	program, err := filepath.EvalSymlinks(program) // the path as the program itself sees it
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"bash", "zsh", "fish"} {
		if script := s.works("completion", name); !strings.Contains(script, program) {
			t.Errorf("the script for %s is %q", name, script)
		}
	}
	bash := exec.CommandContext(bounded(t), "bash", "-c", `eval "$1" && complete -p cutroom`, "bash",
		s.works("completion", "bash"))
	if out, err := bash.CombinedOutput(); err != nil || !strings.Contains(string(out), program) {
		t.Errorf("bash: %v, %s", err, out)
	}
	for line, want := range map[string][]string{
		"cutroom ed":                      {"edit"},
		"cutroom jobs do":                 {"download"},
		"cutroom edit -m gen-im":          {"gen-image-2", "gen-image-latest"},
		"cutroom jobs list --status comp": {"completed"},
		"cutroom completion z":            {"zsh"},
	} {
		asked := newShell(t, "COMP_LINE="+line)
		got := strings.Fields(asked.works())
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%q is completed by %q, want %q", line, got, want)
		}
	}
}
