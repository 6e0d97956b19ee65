package main_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// A server that cannot reserve enough address space says so in one line.
func TestStartReportsAddressSpaceLimit(t *testing.T) {
	t.Parallel()
	command := exec.CommandContext(bounded(t), "sh", "-c", `ulimit -v 1500000 && exec "$0" dev`, string(program))
	command.Env = append(os.Environ(), "CUTROOM_DATA="+t.TempDir(), "CUTROOM_ADDR=127.0.0.1:0", "CUTROOM_INFERENCE_ADDR=127.0.0.1:0")
	out, err := command.CombinedOutput()
	text := strings.TrimSpace(string(out))
	if err == nil || command.ProcessState.ExitCode() != 1 || strings.Contains(text, "\n") ||
		!strings.Contains(text, "limited to 1500000 KiB (ulimit -v)") {
		t.Errorf("exit code %d, %.500s", command.ProcessState.ExitCode(), text)
	}
}
