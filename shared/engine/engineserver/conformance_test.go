package engineserver_test

import (
	"net/http/httptest"
	"testing"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/engine/engineserver/engineservertest"
	"cutroom/shared/engine/enginetest"
	"cutroom/shared/engine/ffmpeg"
	"cutroom/shared/engine/preview"
	"cutroom/shared/testkit/await"
)

func TestEngineConforms(t *testing.T) {
	tools, err := ffmpeg.Find(
		t.Context(), catalog.Limits{VideoDuration: time.Minute, VideoWidth: 4096, VideoHeight: 4096, ImagePixels: 50_000_000},
	)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(engineservertest.Handler(preview.New(tools)))
	t.Cleanup(server.Close)
	small := catalog.Size{Width: 160, Height: 96}
	enginetest.Run(t, enginetest.Harness{
		Engine: newEngine(t, server.URL, await.Max), Video: small, Image: small, FPS: 10, Previews: true,
	})
}
