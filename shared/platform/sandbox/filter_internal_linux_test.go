package sandbox

import (
	"encoding/binary"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/net/bpf"

	"cutroom/shared/platform/sandbox/launcher"
	"cutroom/shared/platform/sandbox/policytest"
)

var update = flag.Bool("update", false, "write the filters from the policy")

// The embedded filters and their readable form must equal the seccomp library's output for the policy.
func TestFiltersMatchPolicy(t *testing.T) {
	for _, architecture := range []string{"amd64", "arm64"} {
		var encoded []byte
		var text strings.Builder
		for _, instruction := range filterOf(t, architecture) {
			encoded = binary.BigEndian.AppendUint64(encoded, uint64(instruction.Op)<<48|
				uint64(instruction.Jt)<<40|uint64(instruction.Jf)<<32|uint64(instruction.K))
			fmt.Fprintln(&text, instruction.Disassemble())
		}
		for name, want := range map[string]string{
			"filter_" + architecture + ".bin":                        string(encoded),
			filepath.Join("testdata", "filter_"+architecture+".txt"): text.String(),
		} {
			if *update {
				if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if got, err := os.ReadFile(name); err != nil || string(got) != want {
				t.Errorf("%s does not match the policy: run go generate ./shared/platform/sandbox (%v)", name, err)
			}
		}
	}
}

// In each filter, the launcher replaces launcher.OwnProcess with its process id.
func TestFiltersContainOwnProcessOnce(t *testing.T) {
	for _, architecture := range []string{"amd64", "arm64"} {
		found := 0
		for _, instruction := range filterOf(t, architecture) {
			if instruction.K == launcher.OwnProcess {
				found++
			}
		}
		if found != 1 {
			t.Errorf("%s: %d instructions contain the process id, want 1", architecture, found)
		}
	}
}

func filterOf(t *testing.T, architecture string) []bpf.RawInstruction {
	t.Helper()
	filter, err := policytest.Filter(architecture)
	if err != nil {
		t.Fatal(err)
	}
	return filter
}
