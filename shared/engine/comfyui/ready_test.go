package comfyui_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/engine/comfyui"
)

// readyFolder contains the bundled workflows. readyFile describes their node classes as ComfyUI does.
const readyFolder = "../../../../gpu/comfyui"

var readyFile = filepath.Join("testdata", "ready.json")

func ready(t *testing.T, server string) comfyui.Config {
	t.Helper()
	c := config(t, server)
	c.Folder = filepath.Join("testdata", filepath.FromSlash(readyFolder))
	source, err := os.ReadFile(filepath.Join(c.Folder, "catalog.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	known, err := catalog.Parse(source, "gen")
	if err != nil {
		t.Fatal(err)
	}
	c.Models = known.Models()
	return c
}

func TestBundledWorkflowsMatchComfyUI(t *testing.T) {
	s := fakeServer(t)
	content, err := os.ReadFile(readyFile)
	s.Classes = nil
	if err == nil {
		err = json.Unmarshal(content, &s.Classes)
	}
	if err != nil {
		t.Fatal(err)
	}
	e := newEngine(t, ready(t, serve(t, s)))
	found := e.Inspect(t.Context())
	if len(found) != 1 || found[0].Err != nil || len(found[0].Lacks) > 0 {
		t.Errorf("found %+v", found)
	}
	s.Classes["VAELoader"] = []byte(`{"input":{"required":{"vae_name":[["wan_2.1_vae.safetensors"]]}},"output":["VAE"]}`)
	want := "models/vae/qwen_image_vae.safetensors: fetch it from " +
		"https://huggingface.co/Comfy-Org/Qwen-Image_ComfyUI/resolve/main/split_files/vae/qwen_image_vae.safetensors"
	if lacks := newEngine(t, ready(t, serve(t, s))).Inspect(t.Context())[0].Lacks; len(lacks) != 1 || lacks["gen-image-2"][0] != want {
		t.Errorf("without a file it lacks %q", lacks)
	}
}
