package launcher_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"cutroom/shared/platform/sandbox/launcher"
)

// Packages outside the standard library, or with many imports, would be initialized before the launcher.
func TestLauncherImportsOnlyStandardLibrary(t *testing.T) {
	for _, system := range []string{"linux", "darwin"} {
		cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{.ImportPath}} {{.Standard}}", ".")
		cmd.Env = append(cmd.Environ(), "GOOS="+system, "CGO_ENABLED=0")
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(out)) {
			path, standard, _ := strings.Cut(strings.TrimSpace(line), " ")
			switch {
			case path == "cutroom/shared/platform/sandbox/launcher":
			case standard != "true":
				t.Errorf("on %s the launcher needs %s, which is not in the standard library", system, path)
			case slices.Contains([]string{"fmt", "reflect", "unicode", "encoding/json"}, path):
				t.Errorf("on %s the launcher needs %s, which is initialized late", system, path)
			}
		}
	}
}

func TestOrderSurvivesCommandLine(t *testing.T) {
	want := launcher.Order{
		Program: "/usr/bin/ffmpeg", Args: []string{"-i", "file:a=b", "--", "", "filter=0"},
		Executes: []string{"/usr/bin/ffmpeg", "/lib/with space=and=signs"}, Reads: []string{"/etc/ld.so.cache"},
		Folder: "/tmp/x", Filter: []uint64{0, 1<<64 - 1, 0x20_00_00_00_0000_0004}, Landlock: true, User: true, Root: true,
		Memory: 1 << 40, MaxFile: 1, Seconds: 60, Reserve: true, Background: true, Status: 4,
	}
	got, err := launcher.Parse(want.CommandLine()[1:])
	if err != nil || !equal(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
	asking := launcher.Order{Ask: true, Root: true}
	if got, err = launcher.Parse(asking.CommandLine()[1:]); err != nil || !got.Ask || !got.Root || got.Landlock {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, line := range []string{
		"", "status=3", "status=3 --", "-- /bin/true", "status=2 -- /bin/true", "status=3 landlok -- /bin/true",
		"status=3 filter=g -- /bin/true", "status=3 memory=a -- /bin/true",
	} {
		if got, err := launcher.Parse(strings.Fields(line)); err == nil {
			t.Errorf("%q is parsed as %+v", line, got)
		}
	}
}

func equal(a, b launcher.Order) bool {
	return slices.Equal(a.CommandLine(), b.CommandLine()) && a.Program == b.Program && slices.Equal(a.Args, b.Args) &&
		slices.Equal(a.Executes, b.Executes) && slices.Equal(a.Reads, b.Reads) && slices.Equal(a.Filter, b.Filter)
}

func TestAbilitySurvivesPipe(t *testing.T) {
	for _, want := range []launcher.Ability{{}, {Landlock: 6, Seccomp: true}, {Landlock: 1, User: true}} {
		if got, err := launcher.ParseAbility(want.String()); err != nil || got != want {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
	}
	for _, written := range []string{"", "6", "6,true", "x,true,true"} {
		if got, err := launcher.ParseAbility(written); err == nil {
			t.Errorf("%q is parsed as %+v", written, got)
		}
	}
}
