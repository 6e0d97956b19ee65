// Package servertest runs the built program like a user and calls it over HTTP with a small client.
// It sees what users see: exit codes, output, and responses. Tests and benchmarks share it.
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

// Key is the development key of every server from Start and Launch.
const Key = "ck_servertest"

type Program string

// Build builds the command into the folder, or finds it (see programtest.Build).
func Build(ctx context.Context, folder string) (Program, error) {
	path, err := programtest.Build(ctx, folder, "cutroom/cmd/cutroom")
	return Program(path), err
}

type Ended struct {
	Stdout, Stderr string
	ExitCode       int
}

// Run runs the program until it exits. settings are environment variables, such as
// "CUTROOM_ADDR=127.0.0.1:0". The CUTROOM_ variables of the caller are removed.
//
// Errors: the program could not be started, or outlived the context.
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

// environment returns this process's environment without settings of Cutroom, so that a
// developer's shell cannot affect a test. If a variable is set twice, the last value counts.
func environment(settings []string) []string {
	var env []string
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "CUTROOM_") {
			env = append(env, variable)
		}
	}
	// Engine servers' results are signed with the tests' library.
	if library, err := c2patest.Find(); err == nil {
		env = append(env, "CUTROOM_C2PA_LIBRARY="+library)
	}
	return append(env, settings...)
}

// sizeForm matches a size in the source of a catalog.
var sizeForm = regexp.MustCompile(`(\d+p): \d+x\d+`)

// SmallResults returns a catalog with results of 64 by 36 pixels, made from another catalog. Its
// jobs take a twentieth of the time of full-size jobs and still use the engine's programs.
func SmallResults(catalog []byte) []byte {
	return sizeForm.ReplaceAll(catalog, []byte("${1}: 64x36"))
}
