// Package lambdatest runs built Lambda functions as Lambda does: the real program,
// fed by an implementation of the Lambda Runtime API, which hands it events and
// takes its answers, streamed ones as they arrive. Tests and benchmarks share it.
package lambdatest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Program is the path of a built function.
type Program string

// Build builds the function of a package, such as "cutroom/functions/jobs", into
// the folder, for this machine and otherwise as it is deployed.
func Build(ctx context.Context, folder, pkg string) (Program, error) {
	path := filepath.Join(folder, filepath.Base(pkg))
	build := exec.CommandContext(ctx, "go", "build", "-o", path, "-tags", "lambda.norpc", "-trimpath", "-ldflags", "-s -w", pkg)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", pkg, err, out)
	}
	return Program(path), nil
}
