package ffmpeg_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/job"
	"cutroom/shared/domain/media/mediatest"
	"cutroom/shared/engine/ffmpeg"
	"cutroom/shared/testkit/patience"
)

// resize scales a picture down, as an engine would.
func resize(t *testing.T, tools *ffmpeg.Tools, path, filter string) error {
	return tools.Run(t.Context(), ffmpeg.Command{
		Folder: t.TempDir(),
		Inputs: []ffmpeg.Source{{Path: path, MIME: "image/png"}},
		Args:   []string{"-vf", filter, "-frames:v", "1", "result.png"},
	})
}

func TestBoundOfMemory(t *testing.T) {
	if runtime.GOOS == "darwin" {
		t.Skip("macOS has no limit on an address space")
	}
	tools := find(t)
	picture := mediatest.Image{Width: 6000, Height: 5000, Source: "color"}.Make(t)
	const filter = "format=gbrpf32le,scale=64:32,format=rgb24"
	if err := resize(t, tools, picture, filter); err != nil {
		t.Fatal(err)
	}
	tools.SetBounds(600<<20, time.Minute)
	failure := checkCode(t, resize(t, tools, picture, filter), job.InvalidInput)
	if failure.Message != "The file takes too much memory to process." {
		t.Errorf("got %v", failure)
	}
}

func TestBoundOfProcessorTime(t *testing.T) {
	tools := find(t)
	tools.SetBounds(4<<30, time.Second)
	failure := checkCode(t, tools.Run(t.Context(), endless(t.TempDir())), job.InvalidInput)
	if failure.Message != "The file takes too long to process." {
		t.Errorf("got %v", failure)
	}
}

// The largest picture that is accepted is decoded, however small its file is,
// and no program uses much memory, whatever its file asks for.
func TestBombs(t *testing.T) {
	tools := find(t)
	const filter = "scale=64:64"
	accepted := mediatest.PNGBomb(t, 7071)
	if info, err := tools.ProbeImage(t.Context(), accepted, "image/png"); err != nil || info.Width != 7071 ||
		info.Height != 7071 {
		t.Errorf("of the largest picture: %+v, %v", info, err)
	}
	if err := resize(t, tools, accepted, filter); err != nil {
		t.Error(err)
	}
	// The bound on one allocation follows from the limits: 80 MiB for these.
	small, err := ffmpeg.Find(
		t.Context(), catalog.Limits{VideoDuration: time.Minute, VideoWidth: 512, VideoHeight: 512, ImagePixels: 1_000_000},
	)
	if err != nil {
		t.Fatal(err)
	}
	profile := mediatest.PNGProfileBomb(t, 100<<20)
	_, err = small.ProbeImage(t.Context(), profile, "image/png")
	checkCode(t, err, job.InvalidInput)
	checkCode(t, resize(t, small, profile, filter), job.InvalidInput)

	// Nor is a video worked on whose pictures are larger than any that is accepted, as one
	// whose header claims less: fewer pixels than an image may have are too many.
	large := mediatest.Video{Width: 1280, Height: 1200, Seconds: 0.1, Source: "color", Silent: true}.Make(t)
	checkCode(t, small.Run(t.Context(), ffmpeg.Command{
		Folder: t.TempDir(), Inputs: []ffmpeg.Source{{Path: large, MIME: "video/mp4"}},
		Args: []string{"-vf", filter, "-frames:v", "1", "result.png"},
	}), job.InvalidInput)

	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &usage); err != nil {
		t.Fatal(err)
	}
	most := usage.Maxrss // of the largest child so far
	if runtime.GOOS != "darwin" {
		most <<= 10
	}
	if most > 1500<<20 {
		t.Errorf("a program took %d MiB", most>>20)
	}
}

// Nothing of this program's environment, such as a key, reaches the programs.
func TestEnvironmentIsEmpty(t *testing.T) {
	t.Setenv("CUTROOM_DEV_KEY", "ck_secret")
	var out bytes.Buffer
	if _, err := find(t).RunShell(t.Context(), t.TempDir(), "env", &out); err != nil {
		t.Fatal(err)
	}
	expected := []string{"PATH", "MALLOC_ARENA_MAX", "PWD", "OLDPWD", "SHLVL", "_"} // the shell sets some
	for line := range strings.Lines(out.String()) {
		if name, _, _ := strings.Cut(line, "="); !slices.Contains(expected, name) {
			t.Errorf("the environment has %s", name)
		}
	}
}

// Only the end of a program's messages is kept for the log.
func TestMessagesAreBounded(t *testing.T) {
	log, err := find(t).RunShell(
		t.Context(), t.TempDir(), "yes noise | head -c 1000000 >&2; echo the end >&2; exit 3", nil,
	)
	if err == nil || len(log) > ffmpeg.KeptLog || !strings.HasSuffix(log, "the end\n") {
		t.Errorf("got %v", err)
	}
}

// A program's child processes end with it.
func TestWholeGroupIsKilled(t *testing.T) {
	tools := find(t)
	folder := t.TempDir()
	started := filepath.Join(folder, "started")
	if err := syscall.Mkfifo(started, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	grandchild := make(chan int)
	go func() {
		content, _ := os.ReadFile(started)
		cancel()
		grandchild <- number(string(content))
	}()
	_, err := tools.RunShell(ctx, folder, "sleep 600 & echo $! > started; wait", nil)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	waitForEnd(t, patience.Receive(t, "grandchild", grandchild))
}
