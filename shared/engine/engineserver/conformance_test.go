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
	e, err := engineserver.New(engineserver.Config{URL: server.URL, Runner: tools})
	if err != nil {
		t.Fatal(err)
	}
	small := catalog.Size{Width: 160, Height: 96}
	enginetest.Run(t, enginetest.Harness{
		Engine: e, Video: small, Image: small, FPS: 10, Previews: true,
	})
}
