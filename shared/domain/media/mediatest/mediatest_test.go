package mediatest_test

import (
	"encoding/json"
	"fmt"
	"image/png"
	"os"
	"os/exec"
	"testing"

	"cutroom/shared/domain/media/mediatest"
)

type stream struct {
	CodecName     string `json:"codec_name"`
	Width, Height int
	PixFmt        string                   `json:"pix_fmt"`
	NbReadPackets string                   `json:"nb_read_packets"`
	ColorTransfer string                   `json:"color_transfer"`
	SideData      []struct{ Rotation int } `json:"side_data_list"`
}

func probe(t *testing.T, path, streams string) []stream {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "ffprobe", "-v", "error", "-select_streams", streams,
		"-count_packets", "-show_streams", "-of", "json", path).Output()
	if err != nil {
		t.Fatal(err)
	}
	var report struct{ Streams []stream }
	if err := json.Unmarshal(out, &report); err != nil {
		t.Fatal(err)
	}
	return report.Streams
}

// The tests of other packages rely on the described properties of these files.
func TestVideosHaveDescribedProperties(t *testing.T) {
	for _, test := range []struct {
		name  string
		video mediatest.Video
		// want lists codec, size, pixel format, packets, transfer, rotation and audio tracks.
		want string
	}{
		{"default", mediatest.Video{}, "h264 160x90 yuv420p 10  [] 1"},
		{"silent", mediatest.Video{Silent: true}, "h264 160x90 yuv420p 10  [] 0"},
		{"portrait", mediatest.Video{Width: 90, Height: 160}, "h264 90x160 yuv420p 10  [] 1"},
		{"odd sides", mediatest.Video{Width: 161, Height: 91, PixelFormat: "yuv444p"}, "h264 161x91 yuv444p 10  [] 1"},
		{"one frame", mediatest.Video{Seconds: 0.1}, "h264 160x90 yuv420p 1  [] 1"},
		{"10 bits", mediatest.Video{PixelFormat: "yuv420p10le"}, "h264 160x90 yuv420p10le 10  [] 1"},
		{
			"HDR", mediatest.Video{Codec: "libx265", PixelFormat: "yuv420p10le", HDR: true},
			"hevc 160x90 yuv420p10le 10 smpte2084 [] 1",
		},
		{"rotated by 90 degrees", mediatest.Video{Rotation: 90}, "h264 160x90 yuv420p 10  [{-90}] 1"},
		{"rotated by 270 degrees", mediatest.Video{Name: "phone.mov", Rotation: 270}, "h264 160x90 yuv420p 10  [{90}] 1"},
		{"variable rate", mediatest.Video{Variable: true}, "h264 160x90 yuv420p 10  [] 1"},
		{"header first", mediatest.Video{FastStart: true}, "h264 160x90 yuv420p 10  [] 1"},
		{"QuickTime", mediatest.Video{Name: "a.mov"}, "h264 160x90 yuv420p 10  [] 1"},
		{"AVI", mediatest.Video{Name: "a.avi"}, "mpeg4 160x90 yuv420p 10  [] 1"},
		{"Matroska", mediatest.Video{Name: "a.mkv"}, "h264 160x90 yuv420p 10  [] 1"},
		{"WebM", mediatest.Video{Name: "a.webm"}, "vp9 160x90 yuv420p 10  [] 1"},
		{"Ogg", mediatest.Video{Name: "a.ogv"}, "theora 160x90 yuv420p 10  [] 1"},
		{"Flash", mediatest.Video{Name: "a.flv"}, "h264 160x90 yuv420p 10  [] 1"},
		{"3GP", mediatest.Video{Name: "a.3gp"}, "h264 160x90 yuv420p 10  [] 1"},
		{"transport stream", mediatest.Video{Name: "a.ts"}, "h264 160x90 yuv420p 10  [] 1"},
		{"GIF", mediatest.Video{Name: "a.gif"}, "gif 160x90 bgra 10  [] 0"},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := test.video.Make(t)
			v := probe(t, path, "v")[0]
			got := fmt.Sprintf("%s %dx%d %s %s %s %v %d", v.CodecName, v.Width, v.Height, v.PixFmt, v.NbReadPackets,
				v.ColorTransfer, v.SideData, len(probe(t, path, "a")))
			if got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// The bombs are valid. A decoder that unpacks one finds the size that its header claims.
func TestPNGBombHasClaimedSize(t *testing.T) {
	const side = 5_000
	file, err := os.Open(mediatest.PNGBomb(t, side))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	picture, err := png.Decode(file)
	if err != nil || picture.Bounds().Dx() != side || picture.Bounds().Dy() != side {
		t.Errorf("the bomb does not decode: %v", err)
	}
}
