package remote_test

import (
	"net/http/httptest"
	"testing"
	"time"

	"cutroom/shared/engine/enginetest"
	"cutroom/shared/ffmpeg"
	"cutroom/shared/model"
	"cutroom/shared/preview"
	"cutroom/shared/remote/remotetest"
)

// TestConformance: behind the protocol an engine is what it is without it.
func TestConformance(t *testing.T) {
	tools, err := ffmpeg.Find(t.Context(), model.Limits{VideoDuration: time.Minute, VideoWidth: 4096, VideoHeight: 4096, ImagePixels: 50_000_000})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(remotetest.Handler(preview.New(tools)))
	t.Cleanup(server.Close)
	small := model.Size{Width: 160, Height: 96}
	enginetest.Run(t, enginetest.Harness{Engine: newEngine(t, server.URL, patience), Video: small, Image: small, FPS: 10})
}
