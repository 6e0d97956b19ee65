package command

import (
	"image/gif"
	"os"
	"path/filepath"
	"testing"

	"cutroom/shared/domain/media/mediatest"
)

func TestGIFOfClipIsSmall(t *testing.T) {
	output := filepath.Join(t.TempDir(), "x.gif")
	fetch := func(path string) error {
		return os.Rename(mediatest.Video{Width: 640, Height: 360, FPS: 20}.Make(t), path)
	}
	if err := convert(t.Context(), "job_1", output, converted[".gif"], fetch); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(output)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	clip, err := gif.DecodeAll(file)
	if err != nil || clip.Config.Width != 480 || clip.Config.Height != 270 || len(clip.Image) > 13 {
		t.Errorf("the GIF has %d pictures of %dx%d: %v", len(clip.Image), clip.Config.Width, clip.Config.Height, err)
	}
}
