package programtest

import (
	"errors"
	"os/exec"
)

// Browser returns the path of a Chromium for headless tests. It prefers the headless shell, which
// takes half the CPU time.
func Browser() (string, error) {
	for _, name := range []string{"chromium-headless-shell", "chromium"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("chromium is missing: run scripts/install-test-tools.sh")
}
