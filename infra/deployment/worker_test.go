package deployment

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"cutroom/shared/testkit/await"
	"cutroom/shared/testkit/programtest"
)

// workerProcess is a worker that takes jobs from the deployed queues.
type workerProcess struct {
	command *exec.Cmd
	log     *programtest.Output
	gone    chan struct{}
}

// startWorker starts a worker as its container would, with the names of the deployment's resources.
// It is stopped when the test ends.
func (d *deployed) startWorker(t *testing.T, settings ...string) *workerProcess {
	t.Helper()
	w := &workerProcess{command: exec.Command(d.worker), log: &programtest.Output{}, gone: make(chan struct{})}
	w.command.Env = append(d.environment(),
		"CUTROOM_JOBS_TABLE="+d.outputs["JobsTableName"], "CUTROOM_USAGE_TABLE="+d.outputs["UsageTableName"],
		"CUTROOM_BUCKET="+d.outputs["BucketName"],
		"CUTROOM_VIDEO_QUEUE="+d.outputs["VideoQueueUrl"], "CUTROOM_IMAGE_QUEUE="+d.outputs["ImageQueueUrl"],
		"CUTROOM_SCRATCH="+t.TempDir(), "CUTROOM_ADDR=127.0.0.1:0",
	)
	if d.calls != nil {
		w.command.Env = append(w.command.Env,
			"AWS_ENDPOINT_URL="+d.calls.URL, "AWS_ENDPOINT_URL_S3="+d.calls.URL, "AWS_ACCESS_KEY_ID="+workerRole)
	}
	w.command.Env = append(w.command.Env, settings...)
	w.command.Stdout, w.command.Stderr = w.log, w.log
	if err := w.command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = w.command.Wait() // ProcessState has the exit status
		close(w.gone)
	}()
	t.Cleanup(func() {
		w.stop(t)
		if t.Failed() {
			t.Logf("the output of a worker:\n%s", w.log)
		}
	})
	until(t, "a worker takes jobs", func(context.Context) (bool, error) {
		select {
		case <-w.gone:
			return false, fmt.Errorf("the worker exited:\n%s", w.log)
		default:
			return strings.Contains(w.log.String(), `"slots":`), nil // earlier versions have another message
		}
	})
	return w
}

func (w *workerProcess) stop(t *testing.T) {
	t.Helper()
	_ = w.command.Process.Signal(syscall.SIGTERM) // fails if it has already ended
	select {
	case <-w.gone:
	case <-time.After(await.Max):
		t.Error("a worker did not stop")
		w.kill()
	}
}

// kill stops the worker as if its machine had been lost.
func (w *workerProcess) kill() {
	_ = w.command.Process.Kill() // fails if it has already ended
	<-w.gone
}

// brokenEngine returns a PATH setting with an ffmpeg that starts but always finds the disk full.
func brokenEngine(t *testing.T) string {
	t.Helper()
	real, err := exec.LookPath("ffmpeg")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	script := "#!/bin/sh\ncase \" $* \" in *' -filters '*|*' -version '*|*' -codecs '*) exec " + real +
		" \"$@\" ;; esac\necho 'No space left on device' >&2\nexit 1\n"
	if err := os.WriteFile(filepath.Join(folder, "ffmpeg"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return "PATH=" + folder + string(os.PathListSeparator) + os.Getenv("PATH")
}
