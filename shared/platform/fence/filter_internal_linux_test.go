package fence

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"go/build"
	"go/format"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/bpf"

	"cutroom/shared/platform/fence/launcher"
	"cutroom/shared/platform/fence/policy"
)

var update = flag.Bool("update", false, "write the filters anew")

// The filters are those that the library assembles of the policy today, for each architecture
// whose system calls it knows. For the others there is none, which a fence says that it lacks.
func TestFiltersAreThePolicy(t *testing.T) {
	files := map[string]string{}
	var filtered []string
	for _, architecture := range architectures(t) {
		filter, err := policy.Filter(architecture)
		if err != nil {
			t.Fatalf("%s: %v", architecture, err)
		}
		if len(filter) > 0 {
			filtered = append(filtered, architecture)
			files["filter_linux_"+architecture+".go"] = inGo("", "for "+architecture, filter)
		}
	}
	if !slices.Contains(filtered, "amd64") || !slices.Contains(filtered, "arm64") {
		t.Errorf("there are filters for %v alone", filtered)
	}
	files["filter_linux_other.go"] = inGo("//go:build linux && !"+strings.Join(filtered, " && !"),
		"for an architecture whose system calls are not known: none", nil)
	for _, name := range existing(t) {
		if _, ok := files[name]; !ok {
			t.Errorf("%s is of no architecture that has a filter", name)
		}
	}
	for name, text := range files {
		formatted, err := format.Source([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if *update { // it is compiled into the next run
			err = os.WriteFile(name, formatted, 0o644)
		}
		if compiled, readErr := os.ReadFile(name); !bytes.Equal(formatted, compiled) {
			t.Errorf("%s is not of the policy any more: run go generate ./shared/platform/fence (%v)",
				name, cmp.Or(err, readErr))
		}
	}
}

// The package has one function for the filter on each platform that it is compiled for.
func TestPlatformsHaveOneFilter(t *testing.T) {
	for _, platform := range platforms(t) {
		context := build.Default
		context.GOOS, context.GOARCH, _ = strings.Cut(platform, "/")
		var compiled []string
		for _, name := range append(existing(t), "system_other.go") {
			matches, err := context.MatchFile(".", name)
			if err != nil {
				t.Fatal(err)
			}
			if matches {
				compiled = append(compiled, name)
			}
		}
		if len(compiled) > 1 || context.GOOS == "linux" && len(compiled) == 0 {
			t.Errorf("%s: %v", platform, compiled)
		}
	}
}

// platforms returns those that Go knows, as GOOS/GOARCH.
func platforms(t *testing.T) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "tool", "dist", "list").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(out))
}

// architectures returns those of Linux that Go knows.
func architectures(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, platform := range platforms(t) {
		if architecture, ok := strings.CutPrefix(platform, "linux/"); ok {
			all = append(all, architecture)
		}
	}
	return all
}

// existing returns the names of the files with filters.
func existing(t *testing.T) []string {
	t.Helper()
	names, err := filepath.Glob("filter_linux_*.go")
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// inGo returns a file with a filter, each instruction beside its text.
func inGo(constraint, whose string, filter []bpf.RawInstruction) string {
	var text strings.Builder
	fmt.Fprintf(&text, "// Code generated from package policy by go generate; DO NOT EDIT.\n\n%s\n\npackage fence\n\n"+
		"// callFilter returns the filter of seccomp %s.\nfunc callFilter() []uint64 {\n", constraint, whose)
	if len(filter) == 0 {
		return text.String() + "return nil\n}\n"
	}
	text.WriteString("return []uint64{\n")
	for _, one := range filter {
		fmt.Fprintf(&text, "%#016x, // %v\n", uint64(one.Op)<<48|uint64(one.Jt)<<40|uint64(one.Jf)<<32|uint64(one.K),
			one.Disassemble())
	}
	return text.String() + "}\n}\n"
}

// The launcher finds the one place of a filter at which the number of its process belongs, and
// takes no other for it.
func TestOwnProcess(t *testing.T) {
	for _, architecture := range architectures(t) {
		filter, err := policy.Filter(architecture)
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, instruction := range filter {
			if instruction.K == launcher.OwnProcess {
				found++
			}
		}
		if len(filter) > 0 && found != 1 {
			t.Errorf("%s: the number of the process belongs at %d places of %d", architecture, found, len(filter))
		}
	}
}
