package ffmpeg

import (
	"context"
	"io"
	"time"

	"cutroom/shared/platform/sandbox"
)

const KeptLog = keptLog

func (t *Tools) SetBounds(memory int64, runTime time.Duration) {
	t.bounds.memory, t.bounds.runTime = memory, runTime
}

// RunShell runs a shell script as if it were ffmpeg, and returns the end of its log.
func (t *Tools) RunShell(ctx context.Context, folder, script string, stdout io.Writer) (log string, err error) {
	shell, err := sandbox.NewProgram(ctx, "/bin/sh")
	if err != nil {
		return "", err
	}
	loose := *t
	loose.box = t.box.Without(sandbox.Layers{Seccomp: true, Landlock: true, Namespaces: true})
	log, err = loose.say(ctx, process{
		program: shell, args: []string{"-c", script}, folder: folder, stdout: stdout,
		processorTime: time.Minute, maxFile: 1 << 20,
	})
	if f, ok := err.(*failure); ok {
		log = f.log
	}
	return log, err
}

func (t *Tools) ThatWriteAnywhere() *Tools {
	loose := *t
	loose.box = t.box.Without(sandbox.Layers{Landlock: true})
	return &loose
}

// ThatTrustTheMachine skips the control run that follows each failure. With many bad files, half of
// all runs would be control runs.
func (t *Tools) ThatTrustTheMachine() *Tools {
	fast := *t
	fast.skipControl = true
	return &fast
}

func (t *Tools) TimeFor(command Command) time.Duration { return t.bounds.timeFor(command) }

var MemoryFor = memoryFor
