package ffmpeg_test

import (
	"bytes"
	"image/jpeg"
	"os/exec"
	"testing"

	"cutroom/shared/domain/media/mediatest"
	"cutroom/shared/engine"
	"cutroom/shared/engine/ffmpeg"
)

// The detail of these progressive frames looks like interlacing to a deinterlacer.
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
			if info.Interlaced != (c.mime == "video/mp2t") {
				t.Errorf("interlaced is %v", info.Interlaced)
			}
			want, err := exec.CommandContext(t.Context(), "ffmpeg", "-v", "error", "-i", path, "-f", "rawvideo", "-").Output()
			if err != nil {
				t.Fatal(err)
			}
			// Broadcasts have both kinds of frames.
			info.Interlaced = info.PixelFormat != "argb"
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

// The files were not probed.
func TestPostersShowWhatPlayersShow(t *testing.T) {
	tools := find(t)
	red := mediatest.Video{Source: "color=c=red", Filter: "drawbox=c=blue:t=fill:w=iw/2", Width: 90, Silent: true}
	anamorphic := red
	anamorphic.Name, anamorphic.Filter = "a.mkv", red.Filter+",setsar=16/9"
	second := func(t *testing.T) string {
		path := t.TempDir() + "/a.mkv"
		mediatest.Run(t, "-i", mediatest.Video{Source: "color=c=lime", Silent: true}.Make(t), "-i", anamorphic.Make(t),
			"-map", "0", "-map", "1", "-c", "copy", "-disposition:v:0", "0", "-disposition:v:1", "default", path)
		return path
	}
	hole := red
	hole.Name, hole.Codec, hole.PixelFormat, hole.Width = "a.webm", "libvpx-vp9", "yuva420p", 160
	hole.Filter = "format=yuva420p,geq=lum='lum(X,Y)':cb='cb(X,Y)':cr='cr(X,Y)':a='255*gte(X,W/2)'"
	hole.Args = []string{"-auto-alt-ref", "0"}
	for _, c := range []struct {
		name, mime string
		make       func(t *testing.T) string
		left       [3]uint32
	}{
		{"wide pixels", "video/x-matroska", func(t *testing.T) string { return anamorphic.Make(t) }, [3]uint32{0, 0, 255}},
		{"the default track", "video/x-matroska", second, [3]uint32{0, 0, 255}},
		{"alpha", "video/webm", func(t *testing.T) string { return hole.Make(t) }, [3]uint32{255, 255, 255}},
	} {
		t.Run(c.name, func(t *testing.T) {
			of := []engine.Depicted{{Input: engine.Input{Path: c.make(t), MIME: c.mime}}}
			made, err := tools.Posters(t.Context(), t.TempDir(), of)
			if err != nil {
				t.Fatal(err)
			}
			picture, err := jpeg.Decode(bytes.NewReader(made[0]))
			if err != nil {
				t.Fatal(err)
			}
			if b := picture.Bounds(); b.Dx() != 160 || b.Dy() != 90 {
				t.Errorf("the poster has %dx%d pixels, want 160x90", b.Dx(), b.Dy())
			}
			r, g, b, _ := picture.At(picture.Bounds().Dx()/4, 45).RGBA()
			for i, value := range []uint32{r >> 8, g >> 8, b >> 8} {
				if max(value, c.left[i])-min(value, c.left[i]) > 40 {
					t.Errorf("the left half is %d %d %d, want %v", r>>8, g>>8, b>>8, c.left)
				}
			}
		})
	}
}
