package preview_test

import (
	"path/filepath"
	"testing"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/media/mediatest"
	"cutroom/shared/engine/enginetest"
	"cutroom/shared/engine/preview"
)

func TestConformance(t *testing.T) {
	found, err := tools()
	if err != nil {
		t.Fatal(err)
	}
	// The bundled clip is four seconds long; one second is enough here.
	short := filepath.Join(t.TempDir(), "person.mp4")
	mediatest.Run(t, "-i", person, "-t", "1", "-c", "copy", short)
	small := catalog.Size{Width: 160, Height: 96}
	enginetest.Run(t, enginetest.Harness{
		Engine: preview.New(found), Video: small, Image: small, FPS: 10, Previews: true, Person: short,
	})
}
