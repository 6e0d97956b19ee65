package frame_test

import (
	"image"
	"testing"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/engine/enginetest"
	"cutroom/shared/engine/preview/frame"
)

func TestEngineConforms(t *testing.T) {
	enginetest.RunLive(t, enginetest.LiveHarness{
		Engine: frame.New(time.Now, func() uint32 { return seed }), Model: &catalog.Model{Kind: catalog.Edit},
		Prompt: "cyberpunk neon", Large: image.Pt(4000, 3000),
	})
}
