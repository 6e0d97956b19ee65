// Package lambdatest runs built Lambda functions the way Lambda does: it starts the real program and serves the
// Lambda Runtime API to it. Streamed responses are read as they arrive. Tests and benchmarks share it.
package lambdatest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
