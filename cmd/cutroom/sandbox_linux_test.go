package main_test

import (
	"bytes"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	c2pa "cutroom/shared/platform/c2pa/helper"
	"cutroom/shared/platform/sandbox/launcher"
	vp8 "cutroom/shared/platform/vp8/helper"
)

// initialized matches a line of output from GODEBUG=inittrace=1.
var initialized = regexp.MustCompile(`(?m)^init (\S+) @`)

// launcherShare is the maximum fraction of the program's packages that may be initialized when it runs as the
// launcher. Packages with fewer dependencies than the launcher are initialized before it runs.
const launcherShare = 0.2

// As FFmpeg's launcher, the program initializes none of this module's packages and only a few others. Otherwise, each
// job would spend CPU time on them at the server's priority.
func TestLauncherInitializesFewPackages(t *testing.T) {
	whole := initializedFor(t, "cutroom", "--version")
	launching := initializedFor(t, launcher.Order{Ask: true}.CommandLine()...)
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

// AWS clients would make the helpers for live video and Content Credentials slow to start and large.
func TestHelpersInitializeNoAWSClients(t *testing.T) {
	const clients = "github.com/aws/aws-sdk-go-v2/service/"
	of := func(paths []string) (found []string) {
		for _, path := range paths {
			if strings.HasPrefix(path, clients) {
				found = append(found, path)
			}
		}
		return found
	}
	if len(of(initializedFor(t, "cutroom", "--version"))) == 0 {
		t.Fatalf("the program initializes nothing of %s: this test sees too little", clients)
	}
	for _, arguments := range [][]string{{vp8.SearchName}, {c2pa.SearchName, "/nonexistent"}} {
		if found := of(initializedFor(t, append([]string{"cutroom"}, arguments...)...)); len(found) > 0 {
			t.Errorf("before %s are initialized %v", arguments[0], found)
		}
	}
}

func initializedFor(t *testing.T, arguments ...string) (packages []string) {
	t.Helper()
	cmd := exec.CommandContext(bounded(t), string(program))
	cmd.Args = arguments
	cmd.Env = []string{"GODEBUG=inittrace=1"}
	var trace bytes.Buffer
	cmd.Stderr = &trace
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, &trace)
	}
	for _, found := range initialized.FindAllStringSubmatch(trace.String(), -1) {
		packages = append(packages, found[1])
	}
	return packages
}
