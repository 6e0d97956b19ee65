package api_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// A deployer who lets requests choose a LoRA gives a form of the catalog the field for it
// (docs/gpu.md), as any other option.
func TestAFieldOfTheDeployersOwn(t *testing.T) {
	builtIn, err := os.ReadFile(filepath.Join("..", "..", "domain", "catalog", "catalog.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	const field = "\n      - {name: lora, type: choice, values: [clay, ink], description: A look to work in.}"
	form := []byte("\n  edit-self-anchored:\n    fields:")
	if !bytes.Contains(builtIn, form) {
		t.Fatal("the catalog has another form")
	}
	w := newWorld(t, setup{catalog: bytes.Replace(builtIn, form, append(form[:len(form):len(form)], field...), 1)})
	id := w.accepted(w.post("gen-2.5", studio, upload("data", clip(t)), text("lora", "clay")))
	if got := w.record(id).Request.Option("lora"); got != "clay" {
		t.Errorf("the job has the LoRA %q", got)
	}
	if a := w.post("gen-2.5", studio, upload("data", clip(t)), text("lora", "glass")); a.status != 422 {
		t.Errorf("another name: %d %s", a.status, a.body)
	}
}
