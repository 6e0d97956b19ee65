package preview_test

import (
	"testing"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/engine/enginetest"
	"cutroom/shared/engine/preview"
)

func TestEngineConforms(t *testing.T) {
	found, err := tools()
	require(t, err)
	small := catalog.Size{Width: 160, Height: 96}
	enginetest.Run(t, enginetest.Harness{
		Engine: preview.New(found), Video: small, Image: small, FPS: 10, Previews: true,
	})
}
