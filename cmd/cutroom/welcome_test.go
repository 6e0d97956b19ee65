package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// ownCatalog is the start of a catalog without the built-in models.
const ownCatalog = `
limits:
  video: {duration: 5m, width: 4096, height: 4096}
  image: {pixels: 50000000}
forms:
  clip:
    fields:
      - {name: data, type: video, required: true, description: The video.}
      - {name: prompt, type: text, max: 4000, description: What to change.}
      - {name: resolution, type: choice, values: [720p], default: 720p, description: The size.}
  dressed:
    fields:
      - {name: data, type: video, required: true, description: The video.}
      - {name: prompt, type: text, max: 4000, description: What to change.}
      - {name: reference_image, type: image, required: true, description: The garment.}
      - {name: resolution, type: choice, values: [720p], default: 720p, description: The size.}
  picture:
    fields:
      - {name: data, type: image, required: true, description: The image.}
      - {name: prompt, type: text, max: 4000, required: true, description: What to change.}
      - {name: resolution, type: choice, values: [720p], default: 720p, description: The size.}
models:
  - {id: atelier-1, kind: try-on, form: dressed, sizes: {720p: 1280x720}, fps: 20, description: Needs a garment.}
  - {id: easel-1, kind: image, form: picture, sizes: {720p: 1280x720}, description: Edits images.}
`

func TestWelcomeNamesCatalogModels(t *testing.T) {
	t.Parallel()
	const example = "Edit a sample clip"
	for name, c := range map[string]struct {
		models string
		// posts is the path that the example posts to, or "".
		posts string
	}{
		"no model takes a clip and a prompt": {"", ""},
		"one model does": {
			"  - {id: scissors-2, kind: clip, form: clip, sizes: {720p: 1280x720}, fps: 20, description: Edits videos.}\n",
			"/v1/jobs/scissors-2",
		},
		"editing models come first": {
			"  - {id: scissors-2, kind: clip, form: clip, sizes: {720p: 1280x720}, fps: 20, description: Edits videos.}\n" +
				"  - {id: brush-3, kind: edit, form: clip, sizes: {720p: 1280x720}, fps: 20, description: Edits videos.}\n",
			"/v1/jobs/brush-3",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "catalog.yaml")
			if err := os.WriteFile(path, []byte(ownCatalog+c.models), 0o600); err != nil {
				t.Fatal(err)
			}
			said := start(t, t.TempDir(), "CUTROOM_CATALOG="+path).Printed()
			if strings.Contains(said, "gen-") || strings.Contains(said, "%!") {
				t.Errorf("the welcome names a missing or broken model:\n%s", said)
			}
			if strings.Contains(said, example) != (c.posts != "") || !strings.Contains(said, c.posts) {
				t.Errorf("want an example that posts to %q:\n%s", c.posts, said)
			}
			if strings.Contains(said, "/v1/chat/completions") {
				t.Errorf("the welcome shows a chat without a chat model:\n%s", said)
			}
		})
	}
}
