package sniff_test

import (
	"os"
	"testing"

	"cutroom/shared/domain/media"
	"cutroom/shared/domain/media/mediatest"
	"cutroom/shared/domain/media/sniff"
)

func sniffed(t *testing.T, path string) (media.Type, bool) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return sniff.Media(content[:min(len(content), media.SniffLen)])
}

func TestMediaDetectsTypes(t *testing.T) {
	video := func(v mediatest.Video) func(*testing.T) string {
		return func(t *testing.T) string { return v.Make(t) }
	}
	image := func(i mediatest.Image) func(*testing.T) string {
		return func(t *testing.T) string { return i.Make(t) }
	}
	for _, test := range []struct {
		name       string
		make       func(*testing.T) string
		mime       string
		video, pic bool
	}{
		{"MP4", video(mediatest.Video{}), "video/mp4", true, false},
		{"MP4 with its header first", video(mediatest.Video{FastStart: true}), "video/mp4", true, false},
		{
			"MP4 in fragments", video(mediatest.Video{Args: []string{"-movflags", "frag_keyframe+empty_moov"}}), "video/mp4",
			true, false,
		},
		{"MP4 of iTunes", video(mediatest.Video{Args: []string{"-brand", "M4V "}}), "video/mp4", true, false},
		{"MP4 of a Sony camera", video(mediatest.Video{Args: []string{"-brand", "MSNV"}}), "video/mp4", true, false},
		{"QuickTime", video(mediatest.Video{Name: "a.mov"}), "video/quicktime", true, false},
		{"3GP", video(mediatest.Video{Name: "a.3gp"}), "video/3gpp", true, false},
		{"WebM", video(mediatest.Video{Name: "a.webm"}), "video/webm", true, false},
		{"Matroska", video(mediatest.Video{Name: "a.mkv"}), "video/x-matroska", true, false},
		{"AVI", video(mediatest.Video{Name: "a.avi"}), "video/x-msvideo", true, false},
		{"transport stream", video(mediatest.Video{Name: "a.ts"}), "video/mp2t", true, false},
		{
			"transport stream of a camcorder",
			video(mediatest.Video{Name: "a.ts", Args: []string{"-mpegts_m2ts_mode", "1"}}), "video/mp2t", true, false,
		},
		{"Ogg", video(mediatest.Video{Name: "a.ogv"}), "video/ogg", true, false},
		{"Flash", video(mediatest.Video{Name: "a.flv"}), "video/x-flv", true, false},
		{"GIF, which is both", video(mediatest.Video{Name: "a.gif"}), "image/gif", true, true},
		{"PNG", image(mediatest.Image{}), "image/png", false, true},
		{"animated PNG", image(mediatest.Image{Args: []string{"-f", "apng"}}), "image/png", false, true},
		{"JPEG", image(mediatest.Image{Name: "a.jpg"}), "image/jpeg", false, true},
		{"WebP", image(mediatest.Image{Name: "a.webp"}), "image/webp", false, true},
		{"animated WebP, which is both", func(t *testing.T) string {
			return mediatest.AnimatedWebP(t, 96, 64, 0, 0, mediatest.Image{Name: "a.webp"}.Make(t))
		}, "image/webp", true, true},
		{"BMP", image(mediatest.Image{Name: "a.bmp"}), "image/bmp", false, true},
		{"TIFF", image(mediatest.Image{Name: "a.tif"}), "image/tiff", false, true},
		{"AVIF", image(mediatest.Image{Name: "a.avif"}), "image/avif", false, true},
		{"HEIC", image(mediatest.Image{Name: "a.heic"}), "image/heic", false, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, ok := sniffed(t, test.make(t))
			if !ok || got.MIME != test.mime || got.Video != test.video || got.Image != test.pic {
				t.Errorf("Media returned %+v, %v", got, ok)
			}
		})
	}
}

func TestMediaRejectsOtherTypes(t *testing.T) {
	for _, test := range []struct {
		name string
		make func(*testing.T) string
	}{
		{"text", func(t *testing.T) string { return mediatest.TextFile(t) }},
		{"HLS playlist", func(t *testing.T) string { return mediatest.Playlist(t, "/etc/hostname") }},
		{"concat script", func(t *testing.T) string { return mediatest.ConcatScript(t, "/etc/hostname") }},
		{"session description", func(t *testing.T) string { return mediatest.SessionDescription(t) }},
		{"SVG", func(t *testing.T) string { return mediatest.SVG(t, "/etc/hostname") }},
		{"noise", func(t *testing.T) string { return mediatest.Noise(t, nil, 4096) }},
		{"text of the letter G", func(t *testing.T) string { return mediatest.Noise(t, []byte("GGGG"), 4096) }},
		{"music in an MP4", func(t *testing.T) string {
			return mediatest.Noise(t, []byte("\x00\x00\x00\x18ftypM4A \x00\x00\x00\x00M4A mp42"), 4096)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got, ok := sniffed(t, test.make(t)); ok {
				t.Errorf("Media detected %+v, want nothing", got)
			}
		})
	}
	if got, ok := sniff.Media(nil); ok {
		t.Errorf("Media detected %+v in an empty file", got)
	}
}
