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
	"cutroom/shared/domain/media"
	"cutroom/shared/domain/media/mediatest"
	"cutroom/shared/engine/ffmpeg"
	"cutroom/shared/testkit/await"
)

func resize(t *testing.T, tools *ffmpeg.Tools, path, filter string) error {
	return tools.Run(t.Context(), ffmpeg.Command{
		Folder: t.TempDir(),
		Inputs: []ffmpeg.Source{{Path: path, MIME: "image/png"}},
		Args:   []string{"-vf", filter, "-frames:v", "1", "result.png"},
	})
}

func TestMemoryIsLimited(t *testing.T) {
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
	// FFmpeg 5 repeats the last frame for its whole length before it encodes any of the copies. Later versions may not.
	long := ffmpeg.Command{
		Folder: t.TempDir(),
		Inputs: []ffmpeg.Source{{
			Path: mediatest.Video{Name: "a.mp4", Width: 160, Height: 90, FPS: 1. / 60, Seconds: 60, Source: "testsrc2", Silent: true}.Make(t),
			MIME: "video/mp4",
		}},
		Args: []string{"-vf", "fps=20:start_time=0,scale=1280:720,format=gbrp,vflip", "-c:v", "libx264", "result.mp4"},
	}
	failures := []error{resize(t, tools, picture, filter)}
	if err := tools.Run(t.Context(), long); err != nil {
		failures = append(failures, err)
	}
	for _, err := range failures {
		if failure := checkCode(t, err, job.InvalidInput); failure.Message != "The file takes too much memory to process." {
			t.Errorf("got %v", failure)
		}
	}
}

func TestMemoryLimitDependsOnMachine(t *testing.T) {
	for machine, want := range map[int64]int64{
		0: 4<<30 + 64<<20, 512 << 20: 1 << 30, 2 << 30: 1 << 30, 4 << 30: 2 << 30, 64 << 30: 4<<30 + 64<<20,
	} {
		if got := ffmpeg.MemoryFor(machine, 2); got != want {
			t.Errorf("with %d MiB a program may use %d MiB, want %d", machine>>20, got>>20, want>>20)
		}
	}
}

func TestProcessorTimeIsLimited(t *testing.T) {
	tools := find(t)
	tools.SetBounds(4<<30, time.Second)
	failure := checkCode(t, tools.Run(t.Context(), endless(t.TempDir())), job.InvalidInput)
	if failure.Message != "The file takes too long to process: more than 1 s of CPU time." {
		t.Errorf("got %v", failure)
	}
}

// The largest accepted picture is decoded. No program uses much memory, whatever the file contains.
func TestDecompressionBombsAreHarmless(t *testing.T) {
	tools := find(t)
	const filter = "scale=64:64"
	accepted := mediatest.PNGBomb(t, 7071)
	if info, err := tools.ProbeImage(t.Context(), accepted, "image/png"); err != nil || info.Width != 7071 ||
		info.Height != 7071 {
		t.Errorf("the largest picture: %+v, %v", info, err)
	}
	if err := resize(t, tools, accepted, filter); err != nil {
		t.Error(err)
	}
	// The per-allocation cap is derived from the catalog's limits; here it comes to 80 MiB.
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

	// The header may understate the size. Decoding fails even below the pixel limit for images.
	large := mediatest.Video{Width: 1280, Height: 1200, Seconds: 0.1, Source: "color", Silent: true}.Make(t)
	checkCode(t, small.Run(t.Context(), ffmpeg.Command{
		Folder: t.TempDir(), Inputs: []ffmpeg.Source{{Path: large, MIME: "video/mp4"}},
		Args: []string{"-vf", filter, "-frames:v", "1", "result.png"},
	}), job.InvalidInput)

	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &usage); err != nil {
		t.Fatal(err)
	}
	most := usage.Maxrss // the memory peak of the largest child process so far
	if runtime.GOOS != "darwin" {
		most <<= 10
	}
	if most > 1500<<20 {
		t.Errorf("a program used %d MiB", most>>20)
	}
}

// FFmpeg must not get the server's environment, which may contain a key.
func TestEnvironmentIsEmpty(t *testing.T) {
	t.Setenv("CUTROOM_DEV_KEY", "ck_secret")
	var out bytes.Buffer
	if _, err := find(t).RunShell(t.Context(), t.TempDir(), "env", &out); err != nil {
		t.Fatal(err)
	}
	expected := []string{"PATH", "MALLOC_ARENA_MAX", "PWD", "OLDPWD", "SHLVL", "_"} // some are set by the shell
	for line := range strings.Lines(out.String()) {
		if name, _, _ := strings.Cut(line, "="); !slices.Contains(expected, name) {
			t.Errorf("the environment has %s", name)
		}
	}
}

// If memory runs out, the kernel must not kill the server.
func TestKernelKillsDecodersFirst(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has such a score")
	}
	var out bytes.Buffer
	_, err := find(t).RunShell(t.Context(), t.TempDir(), "cat /proc/self/oom_score_adj", &out)
	if err != nil || out.String() != "1000\n" {
		t.Errorf("the score is %q, %v; want 1000", out.String(), err)
	}
}

func TestKeptMessagesAreLimited(t *testing.T) {
	log, err := find(t).RunShell(
		t.Context(), t.TempDir(), "yes noise | head -c 1000000 >&2; echo the end >&2; exit 3", nil,
	)
	if err == nil || len(log) > ffmpeg.KeptLog || !strings.HasSuffix(log, "the end\n") {
		t.Errorf("got %v", err)
	}
}

func TestChildProcessesAreKilled(t *testing.T) {
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
	waitForEnd(t, await.Receive(t, "grandchild", grandchild))
}

// Short clips and images get far less CPU time than the longest video, whatever follows their headers.
func TestProcessorTimeDependsOnInput(t *testing.T) {
	tools := find(t)
	full := job.MaxAge * time.Duration(runtime.NumCPU())
	clip := media.Info{Width: 1920, Height: 1080, FrameRate: 30, Duration: 2 * time.Second}
	long := clip
	long.Duration = 5 * time.Minute
	for _, c := range []struct {
		name  string
		input ffmpeg.Source
		most  time.Duration
	}{
		{"a picture", ffmpeg.Source{MIME: "image/png", Info: media.Info{Width: 7000, Height: 7000}}, 30 * time.Second},
		{"an animation with one picture in use",
			ffmpeg.Source{MIME: "image/gif", Info: media.Info{Width: 100, Height: 100}}, 30 * time.Second},
		{"two seconds", ffmpeg.Source{MIME: "video/mp4", Info: clip}, 75 * time.Second},
		{"five minutes", ffmpeg.Source{MIME: "video/mp4", Info: long}, full},
		{"not probed", ffmpeg.Source{MIME: "video/mp4"}, full},
	} {
		got := tools.TimeFor(ffmpeg.Command{Inputs: []ffmpeg.Source{c.input}})
		if got > c.most || got < c.most*2/3 {
			t.Errorf("%s may take %v, want at most %v and not much less", c.name, got, c.most)
		}
	}
}

// Frames are counted if the header does not say how many there are. Text is measured before it is decompressed.
func TestTooManyFramesAreRejected(t *testing.T) {
	tools := find(t)
	for name, mime := range map[string]string{
		"a.mp4": "video/mp4", "a.mkv": "video/x-matroska", "a.avi": "video/x-msvideo", "a.ts": "video/mp2t",
	} {
		path := mediatest.Video{Name: name, Width: 64, Height: 64, FPS: 900, Seconds: 2}.Make(t)
		_, err := tools.ProbeVideo(t.Context(), path, mime)
		failure := checkCode(t, err, job.InvalidInput)
		if failure == nil || !strings.Contains(failure.Message, "The limits are 480 frames") {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := tools.ProbeImage(t.Context(), mediatest.PNGTextBomb(t, "zTXt", 40, 50<<20), "image/png")
	if failure := checkCode(t, err, job.InvalidInput); !strings.Contains(failure.Message, "more than 32 MiB of text") {
		t.Errorf("a PNG with much text: %v", err)
	}
	content, err := os.ReadFile(mediatest.Image{Name: "a.jpg", Width: 64, Height: 32}.Make(t))
	if err != nil {
		t.Fatal(err)
	}
	head := len(content) - 2
	const scan = "\xff\xda\x00\x08\x01\x01\x00\x01\x01\x00\x00\x00"
	for scans, accepted := range map[int]bool{90: true, 120: false} {
		path := filepath.Join(t.TempDir(), "scans.jpg")
		many := slices.Concat(content[:head], bytes.Repeat([]byte(scan), scans), content[head:])
		if err := os.WriteFile(path, many, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err = tools.ProbeImage(t.Context(), path, "image/jpeg")
		if got := err != nil && strings.Contains(err.Error(), "more than 100 scans"); got == accepted {
			t.Errorf("a JPEG with %d more scans: %v", scans, err)
		}
	}
}
