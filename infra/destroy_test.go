package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// `make destroy` rejects prod, however the context spells it, before it builds or asks anything.
func TestMakeRefusesToDestroyProd(t *testing.T) {
	for context, rejected := range map[string]bool{
		`-c stage=prod`: true, `-c "stage=prod"`: true, `-c 'stage=prod'`: true, `-c stage="prod"`: true,
		`--context stage=prod`: true,
		`--context=stage=prod`: true, `-cstage=prod`: true, `-c stage=test	-c	stage=prod -c watch=off`: true,
		`-c stage=prod -c protect=false`: true,
		``:                               false, `-c stage=test`: false, `-c stage=prod2`: false, `-c family=prod`: false,
	} {
		// The target destroy first runs the target not-prod. For other stages the test runs only that step.
		target := "not-prod"
		if rejected {
			target = "destroy"
		}
		out, err := exec.CommandContext(t.Context(), "make", "-C", "..", target, "CONTEXT="+context).CombinedOutput()
		if (err != nil) != rejected || strings.Contains(string(out), "make does not destroy prod.") != rejected {
			t.Errorf("%q: %v %s", context, err, out)
		}
	}
}

// A stage may have several stacks; without --all, CDK asks which one to use.
func TestMakeDeploysAndDestroysEveryStack(t *testing.T) {
	for target, arguments := range map[string][]string{
		"deploy": nil, "destroy": {"STACKS=Cutroom-dev-gpu"},
	} {
		out, err := exec.CommandContext(t.Context(), "make",
			append([]string{"-n", "-C", "..", target, "CONTEXT=-c gpu=true"}, arguments...)...).CombinedOutput()
		want := " -c gpu=true --all\n"
		if arguments != nil {
			want = " -c gpu=true --exclusively Cutroom-dev-gpu\n"
		}
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v %s, want%s", target, err, out, want)
		}
	}
}

// The buckets are emptied first, after the user has confirmed the stage, and CDK does not ask
// again. If the service's stack is kept, nothing is emptied, and CDK asks.
func TestMakeAsksOnceBeforeItDestroys(t *testing.T) {
	for stacks, empties := range map[string]bool{
		"--all": true, "Cutroom-dev": true, "Cutroom-dev Cutroom-dev-gpu": true, "Cutroom-dev-gpu": false,
	} {
		out, err := exec.CommandContext(t.Context(), "make", "-n", "-C", "..", "destroy", "STACKS="+stacks).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v %s", stacks, err, out)
		}
		before, after, _ := strings.Cut(string(out), "cdk destroy ")
		if strings.Contains(before, "go run ./infra/empty") != empties || strings.Contains(after, "--force ") != empties {
			t.Errorf("%s: %s", stacks, out)
		}
	}
}

// make stops before it runs CDK.
func TestMakeDestroysNothingUnlessConfirmed(t *testing.T) {
	folder := t.TempDir()
	ran := filepath.Join(folder, "ran")
	tool := func(name, script string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for answer, destroys := range map[string]bool{"exit 1": false, "exit 0": true} {
		command := exec.CommandContext(t.Context(), "make", "-C", "..", "destroy", "CONTEXT=-c stage=test",
			"GO="+tool("go", answer), "CDK="+tool("cdk", `echo "$@" >`+ran),
			// This test skips the target's requirement checks and builds.
			"-o", "need-destroy", "-o", "cdk")
		_ = os.Remove(ran) // fails if there is none
		out, err := command.CombinedOutput()
		said, _ := os.ReadFile(ran) // empty if missing
		if (err == nil) != destroys || strings.Contains(string(said), "destroy --output cdk.out --force") != destroys {
			t.Errorf("%s: %v %s: CDK was run with %q", answer, err, out, said)
		}
	}
}
