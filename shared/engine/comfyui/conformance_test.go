package comfyui_test

import (
	"testing"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/engine"
	"cutroom/shared/engine/enginetest"
)

func harness(e engine.Engine) enginetest.Harness {
	small := catalog.Size{Width: 160, Height: 96}
	return enginetest.Harness{Engine: e, Models: map[catalog.Kind]string{
		catalog.Restyle: "restyle", catalog.Edit: "edit", catalog.TryOn: "try-on", catalog.Clip: "clip",
		catalog.TextToVideo: "text-to-video", catalog.ImageToVideo: "image-to-video", catalog.Image: "image",
	}, Video: small, Image: small, FPS: 10}
}

func TestEngineConforms(t *testing.T) {
	s := fakeServer(t)
	s.Preview = preview(t)
	h := harness(newEngine(t, config(t, serve(t, s))))
	h.Previews = true
	enginetest.Run(t, h)
}
