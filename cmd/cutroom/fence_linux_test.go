package main_test

import (
	"bytes"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"cutroom/shared/platform/fence/launcher"
)

// initialized matches a line of GODEBUG=inittrace=1.
var initialized = regexp.MustCompile(`(?m)^init (\S+) @`)

// launcherShare is the part of the program's packages that may be initialized before the
// launcher: some have less to wait for than the launcher itself.
const launcherShare = 0.2

// TestLauncherPrecedesTheRest: run as the launcher of ffmpeg the program initializes none of its
// own packages, and few of others. Each job would take their processor time, at the server's
// own priority.
func TestLauncherPrecedesTheRest(t *testing.T) {
	trace := func(arguments ...string) (packages []string) {
		cmd := exec.CommandContext(bounded(t), string(program))
		cmd.Args = arguments
		cmd.Env = []string{"GODEBUG=inittrace=1"}
		var told bytes.Buffer
		cmd.Stderr = &told
		if err := cmd.Run(); err != nil {
			t.Fatalf("%v: %s", err, &told)
		}
		for _, found := range initialized.FindAllStringSubmatch(told.String(), -1) {
			packages = append(packages, found[1])
		}
		return packages
	}
	whole := trace("cutroom", "--version")
	launching := trace(launcher.Order{Ask: true}.CommandLine()...)
	t.Logf("%d packages are initialized for the launcher, %d for the program", len(launching), len(whole))
	if len(launching) == 0 || float64(len(launching)) > launcherShare*float64(len(whole)) {
		t.Errorf("of %d packages %d are initialized for the launcher: %v", len(whole), len(launching), launching)
	}
	for _, path := range launching {
		if strings.HasPrefix(path, "cutroom/") {
			t.Errorf("%s is initialized before the launcher", path)
		}
	}
}
