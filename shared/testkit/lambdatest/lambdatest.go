// Package lambdatest runs built Lambda functions the way Lambda does: it starts the real program and serves the
// Lambda Runtime API to it. Streamed responses are read as they arrive. Tests and benchmarks share it.
package lambdatest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
)

type Program string

// Build builds the functions of packages, such as "cutroom/functions/jobs", into the folder. They are built as
// for a deployment, but for this machine. Each program is named after the last element of its package path.
func Build(ctx context.Context, folder string, packages ...string) error {
	arguments := []string{"build", "-o", folder + string(filepath.Separator), "-tags", "lambda.norpc", "-trimpath",
		"-ldflags", "-s -w"}
	build := exec.CommandContext(ctx, "go", append(arguments, packages...)...)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build the functions: %w\n%s", err, out)
	}
	return nil
}

// BuildAll builds all functions of the repository at root as for a deployment, but for this machine. It returns the
// folder, inside the given folder, that has a folder with the program bootstrap for each function. Programs that are up
// to date are not linked again.
func BuildAll(ctx context.Context, root, folder string) (string, error) {
	// If several tests build at the same time, all but the first find the programs up to date.
	lock, err := os.OpenFile(filepath.Join(folder, "lambda.lock"), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	built := filepath.Join(folder, "lambda")
	build := exec.CommandContext(ctx, filepath.Join(root, "scripts", "build-functions.sh"), Architecture(), built)
	build.Env = append(os.Environ(), "FUNCTIONS_OS="+runtime.GOOS)
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the functions: %w\n%s", err, out)
	}
	return built, nil
}

// Architecture returns Lambda's name for this machine's processor.
func Architecture() string {
	if runtime.GOARCH == "arm64" {
		return "arm64"
	}
	return "x86_64"
}
