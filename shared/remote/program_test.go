//go:build gpu

package remote_test

import (
	"testing"

	"cutroom/shared/engine/enginetest"
	"cutroom/shared/model"
	"cutroom/shared/remote/remotetest"
)

// TestEngineProgram: the engine server, with tiny models of the real classes, does
// what every engine does.
func TestEngineProgram(t *testing.T) {
	url := remotetest.StartProgram(t)
	enginetest.Run(t, enginetest.Harness{
		Engine: newEngine(t, url, 5*patience),
		Models: map[model.Kind]string{
			model.Restyle: "gen-restyle-2", model.Edit: "gen-2.5", model.TryOn: "gen-vton-3.6", model.Clip: "gen-clip",
			model.TextToVideo: "gen-pro-t2v", model.Image: "gen-image-2",
		},
		Video: model.Size{Width: 64, Height: 48}, Image: model.Size{Width: 64, Height: 48}, FPS: 5,
	})
}
