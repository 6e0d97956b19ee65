package transfer_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/media/mediatest"
	"cutroom/shared/engine"
	"cutroom/shared/engine/ffmpeg"
	"cutroom/shared/engine/transfer"
)

func TestLowFrameRatesAreInterpolated(t *testing.T) {
	tools, err := ffmpeg.Find(t.Context(), catalog.Limits{VideoDuration: time.Minute, VideoWidth: 640, VideoHeight: 640})
	if err != nil {
		t.Fatal(err)
	}
	for fps, interpolated := range map[int]bool{0: false, 10: true, 23: false} {
		made := mediatest.Video{Name: "a.mp4", Width: 96, Height: 64, FPS: 10, Seconds: 1, Source: "testsrc2", Silent: true}.Make(t)
		folder := t.TempDir()
		spec := engine.Spec{
			Size: catalog.Size{Width: 96, Height: 64}, FPS: 25, Duration: time.Second, Folder: folder,
			Output: filepath.Join(folder, "output.mp4"),
		}
		f := transfer.Finisher{Runner: tools}
		if err := f.Video(t.Context(), spec, transfer.Made{Path: made, MIME: "video/mp4", FPS: fps}, func(engine.Progress) {}); err != nil {
			t.Fatal(err)
		}
		count := func(filters string) int {
			out, err := exec.CommandContext(t.Context(), "ffmpeg", "-v", "error", "-i", spec.Output, "-vf", filters, "-fps_mode", "passthrough", "-f", "framemd5", "-").Output()
			if err != nil {
				t.Fatal(err)
			}
			return strings.Count(string(out), "\n0,")
		}
		if all, moving := count("null"), count("mpdecimate"); all != 25 || (moving > 18) != interpolated {
			t.Errorf("at %d frames per second: %d frames, of which %d differ from the previous one", fps, all, moving)
		}
	}
}
