package comfyui_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/media/mediatest"
	"cutroom/shared/engine"
	"cutroom/shared/engine/comfyui"
	"cutroom/shared/engine/comfyui/comfyuitest"
	"cutroom/shared/engine/ffmpeg"
)

var tools = sync.OnceValues(func() (*ffmpeg.Tools, error) {
	return ffmpeg.Find(
		context.Background(),
		catalog.Limits{VideoDuration: time.Minute, VideoWidth: 4096, VideoHeight: 4096, ImagePixels: 50_000_000},
	)
})

const patience, shortWait = 2 * time.Minute, 200 * time.Millisecond

func fakeServer(t *testing.T) *comfyuitest.Server {
	t.Helper()
	content, err := os.ReadFile(classesFile)
	s := &comfyuitest.Server{}
	if err == nil {
		err = json.Unmarshal(content, &s.Classes)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.Image = func(seed int64) []byte {
		return picture(t, seed, func(w *bytes.Buffer, m image.Image) error { return png.Encode(w, m) })
	}
	s.Video = func(seed int64) []byte {
		source := []string{"color=c=red", "color=c=blue"}[seed%2]
		content, err := os.ReadFile(
			mediatest.Video{Width: 64, Height: 48, FPS: 8, Seconds: 0.5, Silent: true, Source: source}.Make(t))
		if err != nil {
			t.Error(err)
		}
		return content
	}
	t.Cleanup(s.Wait)
	return s
}

func picture(t *testing.T, seed int64, encode func(*bytes.Buffer, image.Image) error) []byte {
	m := image.NewRGBA(image.Rect(0, 0, 48, 32))
	for i := range 48 * 32 {
		m.Set(i%48, i/48, color.RGBA{uint8(seed), uint8(i), 100, 255})
	}
	var content bytes.Buffer
	if err := encode(&content, m); err != nil {
		t.Error(err)
	}
	return content.Bytes()
}

func models(t *testing.T) []*catalog.Model {
	t.Helper()
	const clip = `{workflow: clip.json, prompt: 9.value, seed: 5.seed, data: 1.file, reference: 3.image, without_reference: 3,
      width: 6.width, height: 6.height, fps: 7.fps, result: 8, multiple: 16, frame_step: 4}`
	file := `
limits: {video: {duration: 1m, width: 4096, height: 4096}, image: {pixels: 1000000}}
forms:
  video: {fields: [{name: data, type: video}, {name: resolution, type: choice, values: [s], default: s}]}
  image: {fields: [{name: data, type: image}, {name: resolution, type: choice, values: [s], default: s}]}
  text: {fields: [{name: resolution, type: choice, values: [s], default: s}]}
models:
`
	for _, kind := range []catalog.Kind{catalog.Restyle, catalog.Edit, catalog.TryOn, catalog.Clip} {
		file += "  - {id: " + string(kind) + ", kind: " + string(kind) + ", form: video, sizes: {s: 160x96}, fps: 10, comfyui: " +
			clip + "}\n"
	}
	file += `
  - {id: image, kind: image, form: image, sizes: {s: 160x96}, comfyui: {
      workflow: image.json, prompt: 6.value, seed: 4.seed, data: 1.image, reference: 2.image, without_reference: [2], result: 5}}
  - {id: image-to-video, kind: image-to-video, form: image, sizes: {s: 160x96}, fps: 10, duration: 5s, comfyui: {
      workflow: animate.json, prompt: 6.value, seed: 4.seed, data: 1.image, reference: 2.image, without_reference: 2,
      fps: 7.fps, result: 8}}
  - {id: text-to-video, kind: text-to-video, form: text, sizes: {s: 160x96}, fps: 10, duration: 5s, comfyui: {
      workflow: text.json, prompt: 5.value, seed: 2.seed, width: 1.width, height: 1.height, frames: 1.batch_size, fps: 3.fps,
      result: 4, max_frames: 100}}
`
	parsed, err := catalog.Parse([]byte(file), "gen")
	if err != nil {
		t.Fatal(err)
	}
	return parsed.Models()
}

func config(t *testing.T, servers ...string) comfyui.Config {
	t.Helper()
	found, err := tools()
	if err != nil {
		t.Fatal(err)
	}
	return comfyui.Config{
		Servers: servers, Models: models(t), Folder: "testdata", Runner: found, Random: rand.Reader,
		Silence: patience, Stall: patience, Starting: patience,
	}
}

func newEngine(t *testing.T, c comfyui.Config) *comfyui.Engine {
	t.Helper()
	e, err := comfyui.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func serve(t *testing.T, s http.Handler) string {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return server.URL
}

func newSpec(t *testing.T, kind catalog.Kind) engine.Spec {
	t.Helper()
	spec := engine.Spec{
		Model: string(kind), Kind: kind, Prompt: "a quiet evening", Seed: 7, Size: catalog.Size{Width: 160, Height: 90},
		FPS: 10, Duration: 500 * time.Millisecond, Folder: t.TempDir(),
	}
	spec.Output = filepath.Join(spec.Folder, "output.mp4")
	found, err := tools()
	if err != nil {
		t.Fatal(err)
	}
	switch kind {
	case catalog.TextToVideo:
	case catalog.Image:
		spec.FPS, spec.Duration, spec.Output = 0, 0, filepath.Join(spec.Folder, "output.png")
		spec.Data = &engine.Input{Path: mediatest.Image{Name: "a.png", Width: 48, Height: 27}.Make(t), MIME: "image/png"}
		spec.Data.Info, err = found.ProbeImage(t.Context(), spec.Data.Path, spec.Data.MIME)
	default:
		spec.Data = &engine.Input{Path: mediatest.Video{Seconds: 0.5, Silent: true}.Make(t), MIME: "video/mp4"}
		spec.Data.Info, err = found.ProbeVideo(t.Context(), spec.Data.Path, spec.Data.MIME)
	}
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

func ignore(engine.Progress) {}

func preview(t *testing.T) []byte {
	return picture(t, 1, func(w *bytes.Buffer, m image.Image) error { return jpeg.Encode(w, m, nil) })
}
