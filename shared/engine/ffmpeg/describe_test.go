package ffmpeg_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
	"time"

	"cutroom/shared/domain/media"
	"cutroom/shared/domain/media/mediatest"
)

func TestDescribeVideoMatchesProbe(t *testing.T) {
	tools := find(t)
	colours := func(name string) []string {
		return []string{"-colorspace", name, "-color_primaries", name, "-color_trc", name, "-color_range", "tv"}
	}
	for _, test := range []struct {
		name  string
		whole bool
		video mediatest.Video
	}{
		{"MP4", true, mediatest.Video{}},
		{"header first", true, mediatest.Video{FastStart: true}},
		{"QuickTime", true, mediatest.Video{Name: "a.mov"}},
		{"silent", true, mediatest.Video{Silent: true}},
		{"one frame", true, mediatest.Video{Seconds: 0.1, Silent: true}},
		{"variable rate", true, mediatest.Video{Variable: true}},
		{"Baseline", true, mediatest.Video{Args: []string{"-profile:v", "baseline"}}},
		{"cropped to whole blocks", true, mediatest.Video{Width: 162, Height: 98}},
		{"colors in the stream and the header", true, mediatest.Video{Args: colours("bt709")}},
		{"colors of standard definition", true, mediatest.Video{Args: colours("smpte170m")}},
		{"wide colors", false, mediatest.Video{Args: []string{"-color_primaries", "bt2020"}}},
		{"fragments", false, mediatest.Video{Args: []string{"-movflags", "frag_keyframe+empty_moov"}}},
		{"turned", false, mediatest.Video{Rotation: 90}},
		{"wide pixels", false, mediatest.Video{Filter: "setsar=2"}},
		{"4:4:4", false, mediatest.Video{PixelFormat: "yuv444p"}},
		{"10 bits", false, mediatest.Video{PixelFormat: "yuv420p10le"}},
		{"full range", false, mediatest.Video{Args: []string{"-color_range", "pc"}}},
		{"interlaced", false, mediatest.Video{Height: 96, Args: []string{"-flags", "+ildct+ilme", "-x264-params", "interlaced=1"}}},
		{"H.265", false, mediatest.Video{Codec: "libx265"}},
		{"sound that is not AAC", false, mediatest.Video{Args: []string{"-c:a", "libopus"}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			mime := "video/mp4"
			if test.video.Name == "a.mov" {
				mime = "video/quicktime"
			}
			path := test.video.Make(t)
			got, whole, err := tools.DescribeVideo(path, mime)
			if err != nil || whole != test.whole {
				t.Fatalf("DescribeVideo returned %+v, %v, %v", got, whole, err)
			}
			if !whole {
				return
			}
			want, err := tools.ProbeVideo(t.Context(), path, mime)
			if err != nil {
				t.Fatal(err)
			}
			if off := got.FrameRate - want.FrameRate; off*off < 1e-6 {
				got.FrameRate = want.FrameRate
			}
			if off := got.Duration - want.Duration; off.Abs() <= 2*time.Microsecond {
				got.Duration = want.Duration
			}
			if want.Primaries == "" || want.Primaries == "unknown" {
				want.Primaries, want.Transfer, want.Matrix = "", "", ""
			}
			if got != want {
				t.Errorf("the header says %+v, ffprobe %+v", got, want)
			}
		})
	}
	if _, whole, _ := tools.DescribeVideo(mediatest.Video{Name: "a.mkv"}.Make(t), "video/x-matroska"); whole {
		t.Error("a Matroska file was described")
	}
	var none media.Info
	if got, whole, err := tools.DescribeVideo(t.TempDir()+"/none", "video/mp4"); err == nil || whole || got != none {
		t.Errorf("DescribeVideo returned %+v, %v, %v for a missing file", got, whole, err)
	}
}

func TestUnusualHeadersAreLeftToProbe(t *testing.T) {
	tools := find(t)
	original, err := os.ReadFile(mediatest.Video{Silent: true, Args: []string{"-bf", "2"}}.Make(t))
	if err != nil {
		t.Fatal(err)
	}
	within := func(movie []byte, kind string) []byte {
		at := bytes.LastIndex(movie, []byte(kind))
		if at < 0 {
			t.Fatalf("the movie has no %s", kind)
		}
		return movie[at:]
	}
	for name, change := range map[string]func(movie []byte){
		"a rotation of the movie": func(movie []byte) {
			header := within(movie, "mvhd")
			for i, value := range []uint32{0, 1 << 16, 0, 0xffff0000, 0} {
				binary.BigEndian.PutUint32(header[40+4*i:], value)
			}
		},
		"two time tables":         func(movie []byte) { copy(within(movie, "ctts"), "stts") },
		"frames without a length": func(movie []byte) { binary.BigEndian.PutUint32(within(movie, "stts")[16:], 0) },
	} {
		movie := bytes.Clone(original)
		change(movie)
		path := filepath.Join(t.TempDir(), "a.mp4")
		if err := os.WriteFile(path, movie, 0o600); err != nil {
			t.Fatal(err)
		}
		if info, whole, err := tools.DescribeVideo(path, "video/mp4"); whole || err != nil {
			t.Errorf("%s: DescribeVideo returned %+v, %v", name, info, err)
		}
	}
}
