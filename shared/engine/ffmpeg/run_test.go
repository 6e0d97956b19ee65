package ffmpeg_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/job"
	"cutroom/shared/domain/media/mediatest"
	"cutroom/shared/engine/ffmpeg"
)

var encode = []string{"-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p"}

func TestRunWritesResult(t *testing.T) {
	tools := find(t)
	folder := t.TempDir()
	var progress []time.Duration
	err := tools.Run(t.Context(), ffmpeg.Command{
		Folder:   folder,
		Inputs:   []ffmpeg.Source{{Path: mediatest.Video{Rotation: 90}.Make(t), MIME: "video/mp4"}},
		Args:     append([]string{"-map", "0:V:0", "-map", "0:a:0?"}, append(encode, "result.mp4")...),
		Progress: func(written time.Duration) { progress = append(progress, written) },
	})
	if err != nil {
		t.Fatal(err)
	}
	info, err := tools.ProbeVideo(t.Context(), filepath.Join(folder, "result.mp4"), "video/mp4")
	if err != nil || info.Width != 90 || info.Height != 160 || !info.Audio {
		t.Errorf("the result is %+v, %v", info, err)
	}
	if len(progress) == 0 || progress[len(progress)-1] < 900*time.Millisecond {
		t.Errorf("progress was %v", progress)
	}
	for i := 1; i < len(progress); i++ {
		if progress[i] < progress[i-1] {
			t.Errorf("progress fell: %v", progress)
		}
	}
}

func TestRunReadsFramesFirst(t *testing.T) {
	var out bytes.Buffer
	size := catalog.Size{Width: 4, Height: 2}
	frames := bytes.Repeat([]byte{0, 255, 0}, 3*size.Width*size.Height)
	err := find(t).Run(t.Context(), ffmpeg.Command{
		Folder: t.TempDir(),
		Frames: &ffmpeg.Frames{Reader: bytes.NewReader(frames), Size: size, FPS: 10},
		Inputs: []ffmpeg.Source{{Path: mediatest.Video{Source: "color=c=red"}.Make(t), MIME: "video/mp4"}},
		Args:   []string{"-map", "0:v", "-f", "rawvideo", "-pix_fmt", "rgb24", "pipe:1"},
		Stdout: &out,
	})
	if err != nil || !bytes.Equal(out.Bytes(), frames) {
		t.Errorf("got %d bytes, %v", out.Len(), err)
	}
}

// The program sees only the end of its input, not the error.
func TestRunFailsWithBrokenFrames(t *testing.T) {
	frames := io.MultiReader(bytes.NewReader(make([]byte, 3*4*2)), iotest.ErrReader(errors.New("broken")))
	err := find(t).Run(t.Context(), ffmpeg.Command{
		Folder: t.TempDir(),
		Frames: &ffmpeg.Frames{Reader: frames, Size: catalog.Size{Width: 4, Height: 2}, FPS: 10},
		Args:   []string{"-f", "null", "-"},
	})
	checkCode(t, err, job.EngineError)
}

func TestRunWorksWithoutInput(t *testing.T) {
	var out bytes.Buffer
	err := find(t).Run(t.Context(), ffmpeg.Command{
		Folder: t.TempDir(),
		Args: []string{
			"-filter_complex", "color=c=red:s=2x2:d=1[v]", "-map", "[v]", "-frames:v", "1", "-f", "rawvideo", "-pix_fmt",
			"rgb24", "pipe:1",
		},
		Stdout: &out,
	})
	if err != nil || out.Len() != 12 {
		t.Errorf("got %d bytes, %v", out.Len(), err)
	}
}

// An invalid command is the service's fault. FFmpeg's messages are not shown to the client.
func TestRunDistinguishesInputFromMachine(t *testing.T) {
	tools := find(t)
	clip := mediatest.Video{}.Make(t)
	for _, test := range []struct {
		name string
		mime string
		args []string
		code job.Code
	}{
		{"unknown filter", "video/mp4", []string{"-vf", "nonsense", "result.mp4"}, job.EngineError},
		{"unknown option", "video/mp4", []string{"-nonsense", "1", "result.mp4"}, job.EngineError},
		{"a missing folder", "video/mp4", []string{"nowhere/result.mp4"}, job.EngineError},
		{"input of another type", "video/webm", []string{"result.mp4"}, job.InvalidInput},
		{"output to a full disk", "video/mp4", []string{"-f", "rawvideo", "/dev/full"}, job.EngineError},
		{
			"disk that is full only at the end", "video/mp4",
			[]string{"-frames:v", "1", "-vf", "scale=16:16", "-f", "matroska", "/dev/full"}, job.EngineError,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			if _, err := os.Stat("/dev/full"); err != nil && test.args[len(test.args)-1] == "/dev/full" {
				t.Skip("this system has no disk that is always full")
			}
			tools := tools
			if strings.Contains(test.name, "disk") {
				tools = tools.ThatWriteAnywhere()
			}
			err := tools.Run(t.Context(), ffmpeg.Command{
				Folder: t.TempDir(), Inputs: []ffmpeg.Source{{Path: clip, MIME: test.mime}}, Args: test.args,
			})
			failure := checkCode(t, err, test.code)
			if failure.Retryable {
				t.Error("the failure is retryable, but a retry would fail too")
			}
			if strings.Contains(test.name, "disk") && failure.Message != "The disk is full." {
				t.Errorf("got %q", failure.Message)
			}
		})
	}
}

func TestRunLimitsOutput(t *testing.T) {
	folder := t.TempDir()
	err := find(t).Run(t.Context(), ffmpeg.Command{
		Folder:    folder,
		Inputs:    []ffmpeg.Source{{Path: mediatest.Video{Seconds: 3}.Make(t), MIME: "video/mp4"}},
		Args:      []string{"-map", "0:V:0", "-f", "rawvideo", "result.yuv"},
		MaxOutput: 100 << 10,
	})
	failure := checkCode(t, err, job.EngineError)
	if failure.Message != "The result is larger than the service allows." {
		t.Errorf("got %q", failure.Message)
	}
	stat, err := os.Stat(filepath.Join(folder, "result.yuv"))
	if err != nil || stat.Size() > 100<<10 {
		t.Errorf("the result is %v, %v", stat, err)
	}
}
