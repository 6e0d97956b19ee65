//go:build gpu

package engineserver_test

import (
	"image"
	"testing"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/engine/engineserver/engineservertest"
	"cutroom/shared/engine/enginetest"
	"cutroom/shared/testkit/await"
)

func TestEngineProgramConforms(t *testing.T) {
	url := engineservertest.StartProgram(t)
	enginetest.Run(t, enginetest.Harness{
		Engine: newConverting(t, url, await.MaxTest),
		Models: map[catalog.Kind]string{
			catalog.Restyle: "gen-restyle-2", catalog.Edit: "gen-2.5", catalog.TryOn: "gen-vton-3.6", catalog.Clip: "gen-clip",
			catalog.TextToVideo: "gen-pro-t2v", catalog.Image: "gen-image-2",
		},
		Video: catalog.Size{Width: 64, Height: 48}, Image: catalog.Size{Width: 64, Height: 48}, FPS: 5,
	})
}

func TestEngineProgramConformsLive(t *testing.T) {
	url := engineservertest.StartProgram(t)
	engineservertest.AwaitLive(t, url, liveModel.ID)
	enginetest.RunLive(t, enginetest.LiveHarness{
		Engine: newLive(t, await.Max, url), Model: liveModel, Prompt: "a quiet winter evening", Large: image.Pt(4000, 3000),
	})
}
