package ffmpeg

import (
	"context"
	"io"
	"time"
)

// KeptLog is how much of a program's messages is kept, in bytes.
const KeptLog = keptLog

// SetBounds changes what a run may use, from what a test could not use up.
func (t *Tools) SetBounds(memory int64, runTime time.Duration) {
	t.bounds.memory, t.bounds.runTime = memory, runTime
}

// RunShell runs a script of the shell as if it were ffmpeg, and gives the end
// of its messages too.
func (t *Tools) RunShell(ctx context.Context, folder, script string, stdout io.Writer) (log string, err error) {
	err = t.run(ctx, process{
		program: t.shell, args: []string{"-c", script}, folder: folder, stdout: stdout,
		processorTime: time.Minute, maxFile: 1 << 20,
	})
	if f, ok := err.(*failure); ok {
		log = f.log
	}
	return log, err
}
