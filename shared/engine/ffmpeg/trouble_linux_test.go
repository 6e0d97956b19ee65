package ffmpeg_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
	"cutroom/shared/domain/media/mediatest"
	"cutroom/shared/engine"
	"cutroom/shared/engine/ffmpeg"
	"cutroom/shared/testkit/disktest"
)

func checkRetryable(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		return
	}
	if failure := engine.AsError(err); failure.Code != job.EngineError || !failure.Retryable {
		t.Errorf("the error is not a retryable engine error: %v", err)
	}
	if fault.Is(err, fault.Invalid) {
		t.Errorf("a good file is invalid: %v", err)
	}
}

func everything(t *testing.T, tools *ffmpeg.Tools, clip, picture string) (succeeded int) {
	t.Helper()
	content, readErr := os.ReadFile(picture)
	for _, do := range []func() error{
		func() error { _, err := tools.ProbeVideo(t.Context(), clip, "video/mp4"); return err },
		func() error { _, err := tools.ProbeImage(t.Context(), picture, "image/png"); return err },
		func() error { return resizeIn(t, tools, os.TempDir(), picture) },
		func() error {
			if readErr != nil {
				return readErr
			}
			_, _, err := tools.Still(t.Context(), content, "image/png", 64)
			return err
		},
	} {
		err := do()
		if err == nil {
			succeeded++
		}
		checkRetryable(t, err)
	}
	return succeeded
}

func resizeIn(t *testing.T, tools *ffmpeg.Tools, folder, picture string) error {
	return tools.Run(t.Context(), ffmpeg.Command{
		Folder: folder, Inputs: []ffmpeg.Source{{Path: picture, MIME: "image/png"}}, Stdout: new(strings.Builder),
		Progress: func(time.Duration) {},
		Args:     []string{"-vf", "scale=16:16", "-frames:v", "1", "-f", "rawvideo", "pipe:1"},
	})
}

func limitOf(t *testing.T, resource int, soft uint64) (restore func()) {
	t.Helper()
	var before unix.Rlimit
	if err := unix.Getrlimit(resource, &before); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: soft, Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := unix.Setrlimit(resource, &before); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRunningOutOfDescriptorsIsRetryable(t *testing.T) {
	tools := find(t)
	clip, picture := mediatest.Video{}.Make(t), mediatest.Image{}.Make(t)
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", t.TempDir())
	const steps = 12
	succeeded := 0
	for more := range steps {
		restore := limitOf(t, unix.RLIMIT_NOFILE, uint64(len(open)-1+more))
		succeeded += everything(t, tools, clip, picture)
		restore()
	}
	if succeeded == 0 || succeeded == 4*steps {
		t.Errorf("%d of %d calls succeeded: the limit was not reached step by step", succeeded, 4*steps)
	}
	if everything(t, tools, clip, picture) != 4 {
		t.Error("calls do not succeed again with descriptors")
	}
}

func TestMissingProcessesAreRetryable(t *testing.T) {
	if users, err := os.ReadFile("/proc/self/uid_map"); err != nil || os.Getuid() != 0 ||
		!strings.Contains(string(users), "4294967295") {
		t.Skip("only root can deprive others of processes without affecting itself")
	}
	tools := find(t)
	clip, picture := mediatest.Video{}.Make(t), mediatest.Image{}.Make(t)
	t.Setenv("TMPDIR", t.TempDir())
	for _, limit := range []uint64{0, 1, 2, 4} {
		restore := limitOf(t, unix.RLIMIT_NPROC, limit)
		succeeded := everything(t, tools, clip, picture)
		restore()
		if limit == 0 && succeeded == 4 { // one call that needs no thread may succeed
			t.Error("all calls succeeded without processes")
		}
	}
}

func TestMissingMemoryIsRetryable(t *testing.T) {
	tools, err := ffmpeg.Find(
		t.Context(), catalog.Limits{VideoDuration: time.Minute, VideoWidth: 512, VideoHeight: 512, ImagePixels: 1_000_000},
	)
	if err != nil {
		t.Fatal(err)
	}
	bomb := mediatest.PNGProfileBomb(t, 100<<20)
	checkCode(t, resize(t, tools, bomb, "scale=16:16"), job.InvalidInput)
	// No machine has this much memory, so the allocation fails.
	tools.SetBounds(1<<47, time.Minute)
	err = resize(t, tools, bomb, "scale=16:16")
	checkRetryable(t, err)
	if err == nil {
		t.Error("the bomb was decoded")
	}
}

func TestMissingProgramsAreRetryable(t *testing.T) {
	clip, picture := mediatest.Video{}.Make(t), mediatest.Image{}.Make(t)
	folder := t.TempDir()
	for _, name := range []string{"ffmpeg", "ffprobe"} {
		path, err := exec.LookPath(name)
		if err == nil {
			err = os.Symlink(path, filepath.Join(folder, name))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	before := os.Getenv("PATH")
	t.Setenv("PATH", folder)
	tools := findAnew(t)
	t.Setenv("PATH", before)
	if got := everything(t, tools, clip, picture); got != 4 {
		t.Errorf("%d of 4 calls succeeded", got)
	}
	if err := errors.Join(
		os.Remove(filepath.Join(folder, "ffmpeg")), os.Remove(filepath.Join(folder, "ffprobe")),
	); err != nil {
		t.Fatal(err)
	}
	if got := everything(t, tools, clip, picture); got != 0 {
		t.Errorf("%d calls succeeded without the programs", got)
	}
}

func TestReadOnlyDiskIsRetryable(t *testing.T) {
	picture, folder := mediatest.Image{}.Make(t), disktest.Small(t, "size=1m")
	if err := unix.Mount("", folder, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	err := find(t).Run(t.Context(), ffmpeg.Command{
		Folder: folder, Inputs: []ffmpeg.Source{{Path: picture, MIME: "image/png"}},
		Args: []string{"-frames:v", "1", "result.png"},
	})
	checkRetryable(t, err)
	if err == nil {
		t.Error("a read-only disk was written")
	}
}

// The system may kill a program, for example when memory runs out.
func TestKilledProgramIsRetried(t *testing.T) {
	command := endless(t.TempDir())
	killed := false
	command.Progress = func(time.Duration) {
		if children := childrenOf(t, os.Getpid()); !killed && len(children) > 0 {
			killed = true
			_ = syscall.Kill(children[0], syscall.SIGKILL)
		}
	}
	err := find(t).Run(t.Context(), command)
	checkRetryable(t, err)
	if err == nil {
		t.Error("a killed program has succeeded")
	}
}
