package engineconfig_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"cutroom/shared/app/engineconfig"
	"cutroom/shared/domain/catalog"
	"cutroom/shared/engine"
)

func TestSettingSelectsTheEngine(t *testing.T) {
	capabilities := map[string]engine.Capabilities{
		"*preview.Engine":     {ImageToVideo: true},
		"*engineserver.Pool":  {Prefetch: true, ImageToVideo: true},
		"*openaimedia.Engine": {Prefetch: true, ImageToVideo: true},
		"*comfyui.Engine":     {Prefetch: true, ImageToVideo: true},
	}
	known, folder := withWorkflow(t)
	for _, c := range []struct{ setting, key, want, err string }{
		{"", "", "*preview.Engine", ""},
		{"preview", "", "*preview.Engine", ""},
		{"http://127.0.0.1:8090", "", "*engineserver.Pool", ""},
		{"http://127.0.0.1:8090,http://127.0.0.1:8091", "", "*engineserver.Pool", ""},
		{"openai:http://127.0.0.1:8091", "", "*openaimedia.Engine", ""},
		{"openai:https://a.example/v1,http://b:8092", "secret", "*openaimedia.Engine", ""},
		{"comfyui:http://127.0.0.1:8188", "", "*comfyui.Engine", ""},
		{"comfyui:http://127.0.0.1:8188,https://b.example", "secret", "*comfyui.Engine", ""},
		{"comfyui:", "", "", "CUTROOM_ENGINE: "},
		{"comfyui:http://a,http://a", "", "", "CUTROOM_ENGINE: "},
		{"Preview", "", "", "CUTROOM_ENGINE: "},
		{"https://127.0.0.1:8090", "", "", "CUTROOM_ENGINE: "},
		{"http://127.0.0.1:8090,", "", "", "CUTROOM_ENGINE: "},
		{"http://127.0.0.1:8090,http://127.0.0.1:8090", "", "", "CUTROOM_ENGINE: "},
		{"openai:", "", "", "CUTROOM_ENGINE: "},
		{"openai:http://a,", "", "", "CUTROOM_ENGINE: "},
		{"preview", "secret", "", "CUTROOM_ENGINE_KEY: "},
		{"http://127.0.0.1:8090", "secret", "", "CUTROOM_ENGINE_KEY: "},
	} {
		t.Run(c.setting+" "+c.key, func(t *testing.T) {
			made, err := engineconfig.New(engineconfig.Config{
				Setting: c.setting, Key: c.key, Catalog: known, CatalogFile: filepath.Join(folder, "catalog.yaml"),
			})
			if c.err != "" {
				if err == nil || !strings.HasPrefix(err.Error(), c.err) || strings.Contains(err.Error(), "secret") {
					t.Errorf("got the error %v, want %s…", err, c.err)
				}
				return
			}
			if got := fmt.Sprintf("%T", made); err != nil || got != c.want {
				t.Fatalf("got %s, %v; want %s", got, err, c.want)
			}
			if got := engine.CapabilitiesOf(made); got != capabilities[c.want] {
				t.Errorf("the capabilities are %+v, want %+v", got, capabilities[c.want])
			}
			if got, want := engineconfig.Parse(c.setting).BuiltIn(), c.want == "*preview.Engine"; got != want {
				t.Errorf("built in: %t, want %t", got, want)
			}
		})
	}
}

func withWorkflow(t *testing.T) (*catalog.Catalog, string) {
	t.Helper()
	known, err := catalog.Parse([]byte(`
limits: {video: {duration: 1m, width: 4096, height: 4096}, image: {pixels: 1000000}}
forms:
  text: {fields: [{name: resolution, type: choice, values: [s], default: s}]}
models:
  - {id: t2v, kind: text-to-video, form: text, sizes: {s: 160x96}, fps: 10, duration: 5s, comfyui: {
      workflow: text.json, prompt: 1.text, result: 1}}
`), "gen")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "text.json"), []byte(`{"1":{"class_type":"A"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	return known, folder
}

func TestComfyUINeedsAWorkflow(t *testing.T) {
	known, err := catalog.Default("gen")
	if err != nil {
		t.Fatal(err)
	}
	_, err = engineconfig.New(engineconfig.Config{Setting: "comfyui:http://a", Catalog: known})
	if err == nil || err.Error() != "CUTROOM_ENGINE: comfyui: no model in the catalog names a workflow" {
		t.Error(err)
	}
}

type inspected struct {
	engine.Engine
	asked int
}

func (i *inspected) Inspect(context.Context) []engine.Inspection {
	i.asked++
	if i.asked == 1 {
		return []engine.Inspection{{Server: "http://a", Err: errors.New("connection refused")}}
	}
	return []engine.Inspection{{Server: "http://a", Lacks: map[string][]string{"t2v": {`the node class "A"`}}}}
}

func TestMissingServerNeedsAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		engineconfig.Inspect(t.Context(), &inspected{}, slog.New(slog.NewTextHandler(&log, nil)))
		for _, want := range []string{"cannot reach the engine's server yet", `model=t2v`, `the node class`} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("%q is missing in %s", want, &log)
			}
		}
	})
}

func TestSlotsDependOnTheEngine(t *testing.T) {
	if n := engineconfig.Parse("").Slots(); n < 1 {
		t.Errorf("the preview engine gets %d concurrent jobs of a lane", n)
	}
	for setting, want := range map[string]int{
		"http://127.0.0.1:8090": 1,
		"http://127.0.0.1:8090,http://127.0.0.1:8091,http://127.0.0.1:8092": 3,
		"openai:http://a,http://b":  1,
		"comfyui:http://a,http://b": 2,
	} {
		if n := engineconfig.Parse(setting).Slots(); n != want {
			t.Errorf("%s gets %d concurrent jobs of a lane, want %d", setting, n, want)
		}
	}
}
