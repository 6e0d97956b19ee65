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
	found := newEngine(t, ready(t, serve(t, s))).Inspect(t.Context())
	if len(found) != 1 || found[0].Err != nil || len(found[0].Lacks) > 0 {
		t.Errorf("found %+v", found)
	}
}
