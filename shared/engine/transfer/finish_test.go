package transfer_test

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/media/mediatest"
	"cutroom/shared/engine"
	"cutroom/shared/engine/ffmpeg"
	"cutroom/shared/engine/transfer"
)

// An interpolation in parts must look like FFmpeg's interpolation of the whole video.
func TestInterpolatedPartsJoin(t *testing.T) {
	tools, err := ffmpeg.Find(t.Context(), catalog.Limits{VideoDuration: time.Minute, VideoWidth: 640, VideoHeight: 640})
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	path, whole := filepath.Join(folder, "16.mp4"), filepath.Join(folder, "whole.mp4")
	run := func(args ...string) string {
		out, err := exec.CommandContext(t.Context(), "ffmpeg", append([]string{"-v", "info", "-hide_banner"}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return string(out)
	}
	run("-i", "../../../testdata/clip.mp4", "-vf", "fps=16,scale=192:108,rotate=t/2", "-an", "-t", "3", "-crf", "8", path)
	run("-i", path, "-vf", "minterpolate=fps=25:mi_mode=mci:mc_mode=aobmc:me_mode=bidir:me=epzs:vsbmc=0:scd=fdiff", "-crf", "8", whole)
	spec := engine.Spec{
		Size: catalog.Size{Width: 192, Height: 108}, FPS: 25, Duration: 3 * time.Second, Folder: folder,
		Output: filepath.Join(folder, "output.mp4"),
	}
	last := 0.0
	err = transfer.Finisher{Runner: tools, Done: 0.5}.Video(t.Context(), spec, transfer.Made{Path: path, MIME: "video/mp4", FPS: 16},
		func(now engine.Progress) {
			if now.Fraction < last || now.Fraction > 1 {
				t.Errorf("progress %g after %g", now.Fraction, last)
			}
			last = now.Fraction
		})
	if err != nil || last != 1 {
		t.Fatalf("progress %g, %v", last, err)
	}
	if parts, _ := filepath.Glob(filepath.Join(folder, "part-*.mp4")); len(parts) != min(runtime.GOMAXPROCS(0), 3) {
		t.Errorf("parts %v", parts)
	}
	// The worst frame decides: a frame that is shifted or repeated at a joint has less than 30 dB.
	said := run("-i", spec.Output, "-i", whole, "-lavfi", "[0:v]trim=end_frame=70[a];[1:v]trim=end_frame=70[b];[a][b]psnr", "-f", "null", "-")
	found := regexp.MustCompile(`min:([0-9.]+)`).FindStringSubmatch(said)
	if found == nil {
		t.Fatalf("no PSNR in %s", said)
	}
	if worst, _ := strconv.ParseFloat(found[1], 64); worst < 34 {
		t.Errorf("the worst frame differs by %g dB from an interpolation of the whole video", worst)
	}
}

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
