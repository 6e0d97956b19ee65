// Package servertest runs the built program as a user would and calls it over HTTP with a small
// client. It sees what users see: exit codes, output and responses. Tests and benchmarks share it.
package servertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"cutroom/shared/testkit/c2patest"
	"cutroom/shared/testkit/programtest"
)

// Key is the development key of every server that Start or Launch starts.
const Key = "ck_servertest"

type Program string

// Build builds the command into the folder, or finds it if it is already built (see programtest.Build).
func Build(ctx context.Context, folder string) (Program, error) {
	path, err := programtest.Build(ctx, folder, "cutroom/cmd/cutroom")
	return Program(path), err
}

type Ended struct {
	Stdout, Stderr string
	ExitCode       int
}

// Run runs the program until it exits. settings are environment variables, such as
// "CUTROOM_ADDR=127.0.0.1:0". The caller's own CUTROOM_ variables are removed.
//
// Errors: the program could not be started, or was still running when the context ended.
func (p Program) Run(ctx context.Context, settings []string, args ...string) (Ended, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, string(p), args...)
	cmd.Env = environment(settings)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	if ctx.Err() != nil {
		return Ended{}, fmt.Errorf("%s %s: %w", p, strings.Join(args, " "), context.Cause(ctx))
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return Ended{}, err
	}
	return Ended{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}, nil
}

// environment returns this process's environment without Cutroom's settings, so that a developer's
// shell cannot affect a test. If a variable is set twice, the last value applies.
func environment(settings []string) []string {
	var env []string
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "CUTROOM_") {
			env = append(env, variable)
		}
	}
	// Servers with engine servers sign their results, using the tests' library.
	if library, err := c2patest.Find(); err == nil {
		env = append(env, "CUTROOM_C2PA_LIBRARY="+library)
	}
	return append(env, settings...)
}

var sizeForm = regexp.MustCompile(`(\d+p): \d+x\d+`)

// SmallResults returns a copy of a catalog whose results have 64x36 pixels. Its jobs take a
// twentieth of the time of full-size jobs, but still use the engine's programs.
func SmallResults(catalog []byte) []byte {
	return sizeForm.ReplaceAll(catalog, []byte("${1}: 64x36"))
}
