//go:build comfyui

package comfyui_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cutroom/shared/engine/comfyui/comfyuitest"
	"cutroom/shared/engine/enginetest"
)

var update = flag.Bool("update", false, "record the responses of the program")

// address returns the URL of ComfyUI. It starts ComfyUI if no URL is set.
func address(t *testing.T) string {
	t.Helper()
	if url := os.Getenv("CUTROOM_TEST_COMFYUI"); url != "" {
		return url
	}
	if os.Getenv("CUTROOM_TEST_COMFYUI_HOME") == "" {
		t.Fatal("neither CUTROOM_TEST_COMFYUI nor CUTROOM_TEST_COMFYUI_HOME is set: see CONTRIBUTING.md")
	}
	return comfyuitest.StartProgram(t).URL
}

func TestProgramConforms(t *testing.T) {
	h := harness(newEngine(t, config(t, address(t))))
	// ComfyUI re-encodes the file that it saves, so the bytes differ.
	h.Inexact = true
	enginetest.Run(t, h)
}

// -update records the responses again.
func TestProgramRespondsAsRecorded(t *testing.T) {
	got := scenario(t, address(t))
	if *update {
		write(t, recordedFile, got)
		write(t, classesFile, classes(t, "image.json", "clip.json", "text.json"))
		write(t, readyFile, classes(t, readyFolder+"/edit-image.json", readyFolder+"/edit-clip.json", readyFolder+"/text-to-video.json",
			readyFolder+"/image-to-video.json"))
		return
	}
	content, err := os.ReadFile(recordedFile)
	var recorded map[string]any
	if err == nil {
		err = json.Unmarshal(content, &recorded)
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, was := range recorded {
		for _, wrong := range differs(was, got[name], name) {
			t.Error(wrong)
		}
	}
}

// ComfyUI may have no models installed.
func TestComfyUISupportsBundledWorkflows(t *testing.T) {
	for _, found := range newEngine(t, ready(t, address(t))).Inspect(t.Context()) {
		if found.Err != nil {
			t.Fatal(found.Err)
		}
		for model, lacks := range found.Lacks {
			for _, one := range lacks {
				if !strings.Contains(one, "Loader)") {
					t.Errorf("%s: the program lacks %s", model, one)
				}
			}
		}
	}
}

func classes(t *testing.T, workflows ...string) map[string]any {
	t.Helper()
	s := &session{T: t, base: address(t), responses: map[string]any{}}
	all := map[string]any{}
	for _, name := range workflows {
		for _, n := range s.workflow(name, nil) {
			class := n.(map[string]any)["class_type"].(string)
			got := s.get(class, "/object_info/"+class).(map[string]any)[class].(map[string]any)
			all[class] = map[string]any{"input": withoutTips(got["input"]), "output": got["output"]}
		}
	}
	return all
}

func withoutTips(value any) any {
	switch value := value.(type) {
	case map[string]any:
		delete(value, "tooltip")
		for _, inner := range value {
			withoutTips(inner)
		}
	case []any:
		for _, inner := range value {
			withoutTips(inner)
		}
	}
	return value
}

func write(t *testing.T, path string, value any) {
	t.Helper()
	content, err := json.MarshalIndent(value, "", "  ")
	if err == nil {
		err = os.WriteFile(filepath.FromSlash(path), append(content, '\n'), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
