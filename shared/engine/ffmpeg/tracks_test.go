package ffmpeg_test

import (
	"bytes"
	"os/exec"
	"testing"

	"cutroom/shared/domain/media/mediatest"
	"cutroom/shared/engine/ffmpeg"
)

// These frames are progressive, but their detail looks interlaced to a deinterlacer.
func TestCorrectionsKeepOtherPictures(t *testing.T) {
	tools := find(t)
	const lines = "geq=lum='255*mod(Y,2)':cb='X':cr='Y'"
	for _, c := range []struct {
		clip mediatest.Video
		mime string
	}{
		{mediatest.Video{Name: "a.ts", Filter: lines}, "video/mp2t"},
		{mediatest.Video{Name: "a.ts", Codec: "mpeg2video", Filter: lines, FPS: 25}, "video/mp2t"},
		{mediatest.Video{Name: "a.mkv", Filter: lines, PixelFormat: "yuv422p10le"}, "video/x-matroska"},
		{mediatest.Video{Name: "a.mov", Filter: "setsar=16/9", Codec: "qtrle", PixelFormat: "argb"}, "video/quicktime"},
		{mediatest.Video{Name: "a.avi", Width: 151, Height: 83, Codec: "mjpeg", PixelFormat: "yuvj444p"}, "video/x-msvideo"},
	} {
		t.Run(c.clip.Name+c.clip.Codec, func(t *testing.T) {
			path := c.clip.Make(t)
			info, err := tools.ProbeVideo(t.Context(), path, c.mime)
			if err != nil {
				t.Fatal(err)
			}
			if info.Interlaced != (c.clip.Codec != "qtrle") {
				t.Errorf("interlaced is %v", info.Interlaced)
			}
			want, err := exec.CommandContext(t.Context(), "ffmpeg", "-v", "error", "-i", path, "-f", "rawvideo", "-").Output()
			if err != nil {
				t.Fatal(err)
			}
			source := ffmpeg.Source{Path: path, MIME: c.mime, Info: info}
			var got bytes.Buffer
			err = tools.Run(t.Context(), ffmpeg.Command{
				Folder: t.TempDir(), Inputs: []ffmpeg.Source{source}, Stdout: &got,
				Args: []string{"-filter_complex", source.Picture(0) + "[v]", "-map", "[v]", "-f", "rawvideo", "pipe:1"},
			})
			if err != nil || !bytes.Equal(got.Bytes(), want) {
				t.Errorf("%d bytes of pictures differ from the file's, %d: %v", got.Len(), len(want), err)
			}
		})
	}
}
