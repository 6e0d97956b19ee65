package engineserver_test

import (
	"net/http/httptest"
	"testing"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/engine/engineserver"
	"cutroom/shared/engine/engineserver/engineservertest"
	"cutroom/shared/engine/enginetest"
	"cutroom/shared/engine/ffmpeg"
	"cutroom/shared/engine/preview"
	"cutroom/shared/testkit/await"
)

func findTools(t *testing.T) *ffmpeg.Tools {
	t.Helper()
	tools, err := ffmpeg.Find(
		t.Context(), catalog.Limits{VideoDuration: time.Minute, VideoWidth: 4096, VideoHeight: 4096, ImagePixels: 50_000_000},
	)
	if err != nil {
		t.Fatal(err)
	}
	return tools
}

// newConverting returns an engine that converts files, as in production.
func newConverting(t *testing.T, url string, silence time.Duration) *engineserver.Engine {
	t.Helper()
	e, err := engineserver.New(engineserver.Config{URL: url, Silence: silence, Starting: await.Max, Runner: findTools(t)})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestEngineConforms(t *testing.T) {
	server := httptest.NewServer(engineservertest.Handler(preview.New(findTools(t))))
	t.Cleanup(server.Close)
	small := catalog.Size{Width: 160, Height: 96}
	enginetest.Run(t, enginetest.Harness{
		Engine: newConverting(t, server.URL, await.Max), Video: small, Image: small, FPS: 10, Previews: true,
	})
}
