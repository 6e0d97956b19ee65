package ffmpeg_test

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"cutroom/shared/domain/job"
	"cutroom/shared/domain/media"
	"cutroom/shared/domain/media/mediatest"
	"cutroom/shared/engine/ffmpeg"
	"cutroom/shared/testkit/await"
)

// trap is an address and a file that decoders must not access.
type trap struct {
	address, file string
	accepted      atomic.Int32
}

// setTrap listens on an address of this machine. The file is a clip that FFmpeg could concatenate.
func setTrap(t *testing.T) *trap {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	tr := &trap{
		address: "http://" + listener.Addr().String() + "/a.ts",
		file:    mediatest.Video{Name: "secret.ts", Source: "color=c=red", Silent: true}.Make(t),
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			tr.accepted.Add(1)
			conn.Close()
		}
	}()
	t.Cleanup(func() {
		listener.Close()
		await.Receive(t, "done", done)
	})
	return tr
}

func TestTrapWorksOutsideSandbox(t *testing.T) {
	tr := setTrap(t)
	unsandboxed := func(demuxer, path string, options ...string) error {
		args := append([]string{"-v", "error", "-f", demuxer, "-protocol_whitelist", "file,http,tcp"}, options...)
		return exec.CommandContext(t.Context(), "ffmpeg", append(args, "-i", path, "-f", "null", "-")...).Run()
	}
	_ = unsandboxed("hls", mediatest.Playlist(t, tr.address), "-allowed_extensions", "ALL")
	if tr.accepted.Load() == 0 {
		t.Error("a playlist made no connection")
	}
	if err := unsandboxed("hls", mediatest.Playlist(t, tr.file), "-allowed_extensions", "ALL"); err != nil {
		t.Errorf("a playlist did not open the file: %v", err)
	}
	if err := unsandboxed("concat", mediatest.ConcatScript(t, tr.file), "-safe", "0"); err != nil {
		t.Errorf("a script did not open the file: %v", err)
	}
	colour := mediatest.Video{
		Name: "red.mov", Source: "color=c=red", Silent: true, Codec: "mjpeg", PixelFormat: "yuvj420p",
	}.Make(t)
	out, err := exec.CommandContext(t.Context(), "ffmpeg", "-v", "error", "-f", "mov", "-enable_drefs", "1",
		"-use_absolute_path", "1",
		"-i", mediatest.ExternalTrack(t, colour), "-frames:v", "1", "-f", "rawvideo", "-pix_fmt", "rgb24", "pipe:1").Output()
	if err != nil || len(out) < 3 {
		t.Errorf("an alias did not open the file: %v, %d bytes", err, len(out))
	}
}

// checkRunRejects checks that a run rejects the input and writes no result, even if the input was not probed first.
func checkRunRejects(t *testing.T, tools *ffmpeg.Tools, path, mime string) {
	t.Helper()
	folder := t.TempDir()
	err := tools.Run(t.Context(), ffmpeg.Command{
		Folder: folder,
		Inputs: []ffmpeg.Source{{Path: path, MIME: mime}},
		Args:   []string{"-map", "0:V:0", "-c:v", "libx264", "-preset", "ultrafast", "result.mp4"},
	})
	checkCode(t, err, job.InvalidInput)
	if stat, err := os.Stat(filepath.Join(folder, "result.mp4")); err == nil && stat.Size() > 0 {
		t.Errorf("there is a result of %d bytes", stat.Size())
	}
}

// A track may refer to another file.
func TestExternalTrackIsNotRead(t *testing.T) {
	tools := find(t)
	secret := mediatest.Video{
		Name: "secret.mov", Source: "color=c=red", Silent: true, Codec: "mjpeg", PixelFormat: "yuvj420p",
	}.Make(t)
	var out bytes.Buffer
	err := tools.Run(t.Context(), ffmpeg.Command{
		Folder: t.TempDir(),
		Inputs: []ffmpeg.Source{{Path: mediatest.ExternalTrack(t, secret), MIME: "video/quicktime"}},
		Args: []string{
			"-map", "0:V:0", "-frames:v", "1", "-vf", "scale=1:1", "-f", "rawvideo", "-pix_fmt", "rgb24", "pipe:1",
		},
		Stdout: &out,
	})
	if err != nil {
		checkCode(t, err, job.InvalidInput)
	} else if p := out.Bytes(); len(p) != 3 || p[0] > 200 && p[1] < 50 && p[2] < 50 {
		t.Errorf("the result is %v, the color of the other file", p)
	}
}

func TestFilesThatAreNotMediaAreRejected(t *testing.T) {
	tools := find(t)
	clip := mediatest.Video{}.Make(t)
	for _, test := range []struct {
		name, path, mime string
		onlyRun          bool
	}{
		{name: "text named .mp4", path: mediatest.TextFile(t), mime: "video/mp4"},
		{
			name: "garbage after the first box of an MP4",
			path: mediatest.Noise(t, []byte("\x00\x00\x00\x18ftypisom\x00\x00\x02\x00isommp42"), 64<<10), mime: "video/mp4",
		},
		{
			name: "garbage after the header of a WebM",
			path: mediatest.Noise(t, []byte("\x1a\x45\xdf\xa3\x9f\x42\x82\x84webm"), 64<<10), mime: "video/webm",
		},
		{
			name: "garbage after the header of an AVI", path: mediatest.Noise(t, []byte("RIFF\x00\x00\x01\x00AVI LIST"), 64<<10),
			mime: "video/x-msvideo",
		},
		{name: "MP4 whose end, with the header, is missing", path: mediatest.Truncated(t, clip, 0.9), mime: "video/mp4"},
		{name: "empty MP4", path: mediatest.Truncated(t, clip, 0), mime: "video/mp4"},
		{
			name: "MP4 without pictures", path: mediatest.Truncated(t, mediatest.Video{FastStart: true}.Make(t), 0.2),
			mime: "video/mp4",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := tools.ProbeVideo(t.Context(), test.path, test.mime)
			checkCode(t, err, job.InvalidInput)
			checkRunRejects(t, tools, test.path, test.mime)
		})
	}
}

// The intact part is used, as in video players.
func TestTruncatedClipIsUsed(t *testing.T) {
	tools := find(t)
	clip := mediatest.Truncated(t, mediatest.Video{FastStart: true, Seconds: 2}.Make(t), 0.7)
	if _, err := tools.ProbeVideo(t.Context(), clip, "video/mp4"); err != nil {
		t.Error(err)
	}
	folder := t.TempDir()
	err := tools.Run(t.Context(), ffmpeg.Command{
		Folder: folder, Inputs: []ffmpeg.Source{{Path: clip, MIME: "video/mp4"}},
		Args: []string{"-map", "0:V:0", "-c:v", "libx264", "-preset", "ultrafast", "result.mp4"},
	})
	if err != nil {
		t.Fatal(err)
	}
	info, err := tools.ProbeVideo(t.Context(), filepath.Join(folder, "result.mp4"), "video/mp4")
	if err != nil || info.Duration < 500*time.Millisecond || info.Duration > 2*time.Second {
		t.Errorf("the result is %+v, %v", info, err)
	}
}

func TestPolyglotIsTreatedAsVideo(t *testing.T) {
	path := mediatest.WithZip(t, mediatest.Video{}.Make(t))
	info, err := find(t).ProbeVideo(t.Context(), path, "video/mp4")
	if err != nil || info.Width != 160 {
		t.Errorf("got %+v, %v", info, err)
	}
}

func TestOversizedPicturesAreRejected(t *testing.T) {
	tools := find(t)
	for name, path := range map[string]string{
		"header of 60,000 by 60,000 pixels": mediatest.PNGHeader(t, 60_000, 60_000),
		"bomb of 12,000 by 12,000 pixels":   mediatest.PNGBomb(t, 12_000),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := tools.ProbeImage(t.Context(), path, "image/png")
			if failure := checkCode(t, err, job.InvalidInput); failure.Message != "The image is larger than 50 megapixels." {
				t.Errorf("got %q", failure.Message)
			}
			checkCode(t, resize(t, tools, path, "scale=64:64"), job.InvalidInput)
		})
	}
}

func TestOverlongClipsAreRejected(t *testing.T) {
	tools := find(t)
	hours := mediatest.Video{FPS: 1.0 / 60, Seconds: 6 * 3600, Silent: true, Width: 64, Height: 64}.Make(t)
	for name, path := range map[string]string{
		"a clip of several hours":          hours,
		"a clip whose header claims hours": mediatest.ClaimDuration(t, mediatest.Video{}.Make(t), 6*3600, false),
		"a clip whose tracks claim hours":  mediatest.ClaimDuration(t, mediatest.Video{}.Make(t), 6*3600, true),
		"a clip of several hours, of an unknown type": mediatest.Video{
			Name: "a.ts", FPS: 1.0 / 60, Seconds: 3600, Silent: true, Width: 64, Height: 64,
		}.Make(t),
	} {
		t.Run(name, func(t *testing.T) {
			mime := "video/mp4"
			if filepath.Ext(path) == ".ts" {
				mime = "video/mp2t"
			}
			_, err := tools.ProbeVideo(t.Context(), path, mime)
			if failure := checkCode(t, err, job.InvalidInput); failure.Message != "The video is longer than 5 minutes." {
				t.Errorf("got %q", failure.Message)
			}
		})
	}
	t.Run("a clip of several hours whose header claims a second", func(t *testing.T) {
		path := mediatest.ClaimDuration(t, hours, 1, true)
		folder := t.TempDir()
		err := tools.Run(t.Context(), ffmpeg.Command{
			Folder: folder,
			Inputs: []ffmpeg.Source{{Path: path, MIME: "video/mp4"}},
			Args:   []string{"-map", "0:V:0", "-r", "1", "-c:v", "libx264", "-preset", "ultrafast", "result.mp4"},
		})
		if err != nil {
			t.Fatal(err)
		}
		file, err := os.Open(filepath.Join(folder, "result.mp4"))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		stat, err := file.Stat()
		if err != nil {
			t.Fatal(err)
		}
		info, err := media.Inspect(file, stat.Size(), "video/mp4")
		if err != nil || info.Duration > limits.VideoDuration+time.Minute {
			t.Errorf("the result is %+v, %v", info, err)
		}
	})
}

func TestUndecodableAudioIsInvalidInput(t *testing.T) {
	content, err := os.ReadFile(mediatest.Video{}.Make(t))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "clip.mp4")
	if err := os.WriteFile(path,
		bytes.ReplaceAll(bytes.ReplaceAll(content, []byte("mp4a"), []byte("zzzz")), []byte("esds"), []byte("zzzz")),
		0o600); err != nil {
		t.Fatal(err)
	}
	tools := find(t)
	if info, err := tools.ProbeVideo(t.Context(), path, "video/mp4"); err != nil || info.Audio || !info.SoundLost {
		t.Fatalf("the probe returns %+v, %v", info, err)
	}
	err = tools.Run(t.Context(), ffmpeg.Command{
		Folder: t.TempDir(), Inputs: []ffmpeg.Source{{Path: path, MIME: "video/mp4"}},
		Args: append([]string{"-map", "0:V:0", "-map", "0:a:0"}, append(encode, "result.mp4")...),
	})
	if failure := checkCode(t, err, job.InvalidInput); failure.Message != "The file cannot be decoded." {
		t.Errorf("got %q", failure.Message)
	}
}
