package sandbox

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"

	"cutroom/shared/platform/sandbox/libraries"
)

// Search runs the program outside the sandbox to find a library.
func (p Program) Search(ctx context.Context, env []string, args ...string) (found libraries.Found, err error) {
	cmd := exec.CommandContext(ctx, p.Path, args...)
	cmd.Env = env
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, &found)
	}
	switch {
	case ctx.Err() != nil:
		return found, ctx.Err()
	case err != nil:
		return found, fmt.Errorf("this program cannot search for the library: %w", err)
	}
	return found, nil
}

// maxLog limits a Log, in bytes.
const maxLog = 2 << 10

// Log keeps the beginning of a program's messages.
type Log struct{ kept []byte }

func (l *Log) Write(p []byte) (int, error) {
	l.kept = append(l.kept, p[:min(len(p), maxLog-len(l.kept))]...)
	return len(p), nil
}

// String returns the messages in one line.
func (l *Log) String() string { return strings.Join(strings.Fields(string(l.kept)), " ") }
