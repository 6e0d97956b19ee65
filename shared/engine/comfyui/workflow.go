package comfyui

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/engine"
	"cutroom/shared/engine/transfer"
)

const maxWorkflow = 4 << 20

// An input is a value or a link to another node. A link is a list of that node's id and the index of its output.
type node struct {
	Class  string         `json:"class_type"`
	Inputs map[string]any `json:"inputs"`
	// Meta is not sent to servers. URL is where to fetch the node's model file.
	Meta struct {
		URL string `json:"url"`
	} `json:"_meta,omitzero"`
}

type graph map[string]node

type workflow struct {
	*catalog.Workflow
	model *catalog.Model
	graph graph
}

// readWorkflow reads a model's workflow and checks that the inputs named in the catalog exist.
func readWorkflow(folder string, m *catalog.Model) (*workflow, error) {
	path := m.Workflow.File
	if !filepath.IsAbs(path) {
		path = filepath.Join(folder, path)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the workflow: %w", err)
	}
	w := &workflow{Workflow: m.Workflow, model: m}
	if w.graph, err = parseGraph(content); err != nil {
		return nil, fmt.Errorf("workflow %s: %w", path, err)
	}
	if err := w.check(); err != nil {
		return nil, fmt.Errorf("workflow %s: %w", path, err)
	}
	return w, nil
}

func parseGraph(content []byte) (graph, error) {
	if len(content) > maxWorkflow {
		return nil, fmt.Errorf("the file has more than %d bytes", maxWorkflow)
	}
	// In the editor's own format, nodes are a list and inputs have no names.
	var saved struct{ Nodes []any }
	if json.Unmarshal(content, &saved) == nil && saved.Nodes != nil {
		return nil, errors.New("the workflow is not in API format: export it with \"Export (API)\"")
	}
	decoder := json.NewDecoder(bytes.NewReader(content))
	// Keep numbers as written, because seeds have 64 bits.
	decoder.UseNumber()
	var g graph
	if err := decoder.Decode(&g); err != nil {
		return nil, fmt.Errorf("the file is not a workflow in API format: %w", err)
	}
	if len(g) == 0 {
		return nil, errors.New("the workflow has no nodes")
	}
	for id, n := range g {
		if n.Class == "" {
			return nil, fmt.Errorf("node %q has no class_type", id)
		}
		for name, value := range n.Inputs {
			if from, _, linked := link(value); linked {
				if _, known := g[from]; !known {
					return nil, fmt.Errorf("input %q of node %q (%s) is linked to node %q, which does not exist", name, id, n.Class, from)
				}
			}
		}
	}
	return g, nil
}

// link returns the node id and the output index in a link. linked is false for any other value.
func link(value any) (from string, output int, linked bool) {
	pair, _ := value.([]any)
	if len(pair) != 2 {
		return "", 0, false
	}
	from, isText := pair[0].(string)
	number, isNumber := pair[1].(json.Number)
	if !isText || !isNumber {
		return "", 0, false
	}
	n, err := number.Int64()
	return from, int(n), err == nil
}

func (w *workflow) check() error {
	for _, place := range w.Places() {
		if _, known := w.graph[place.Node]; !known {
			return fmt.Errorf("the workflow has no node %q, which the catalog names in comfyui as %q", place.Node, place)
		}
	}
	for _, id := range append([]string{w.Result}, w.WithoutReference...) {
		if _, known := w.graph[id]; !known {
			return fmt.Errorf("the workflow has no node %q, which the catalog names in comfyui", id)
		}
	}
	if slices.Contains(w.WithoutReference, w.Result) {
		return errors.New("without_reference removes the node of the result")
	}
	return nil
}

func (w *workflow) takes(spec engine.Spec) error {
	if spec.Reference != nil && len(w.Reference) == 0 {
		return engine.InvalidInput(nil, "This model does not support a reference image.")
	}
	if made := w.atModelRate(spec); w.MaxFrames > 0 && transfer.FrameCount(made) > w.MaxFrames {
		return engine.InvalidInput(nil, "This model edits clips of at most %.1f seconds.", float64(w.MaxFrames)/float64(made.FPS))
	}
	return nil
}

func (w *workflow) size(spec engine.Spec) catalog.Size {
	round := func(n int) int { return max(w.Multiple, (n+w.Multiple/2)/w.Multiple*w.Multiple) }
	return catalog.Size{Width: round(spec.Size.Width), Height: round(spec.Size.Height)}
}

// atModelRate returns the edit with the frame rate at which the model works. The workflow interpolates the rest.
func (w *workflow) atModelRate(spec engine.Spec) engine.Spec {
	spec.FPS /= w.Interpolate
	return spec
}

// frames returns the number of frames to generate. The result may need fewer.
func (w *workflow) frames(spec engine.Spec) int {
	return (transfer.FrameCount(w.atModelRate(spec))-1+w.FrameStep-1)/w.FrameStep*w.FrameStep + 1
}

type names struct{ data, reference string }

// fill returns the workflow with an edit's values. prefix is the prefix for the name of the saved file.
func (w *workflow) fill(spec engine.Spec, uploaded names, prefix string) graph {
	filled := graph{}
	for id, n := range w.graph {
		filled[id] = node{Class: n.Class, Inputs: maps.Clone(n.Inputs)}
	}
	if spec.Reference == nil {
		filled.leaveOut(w.WithoutReference)
	}
	size := w.size(spec)
	filled.set(w.Prompt, spec.Prompt)
	filled.set(w.Seed, spec.Seed)
	filled.set(w.Data, uploaded.data)
	filled.set(w.Reference, uploaded.reference)
	filled.set(w.Width, size.Width)
	filled.set(w.Height, size.Height)
	filled.set(w.Frames, w.frames(spec))
	filled.set(w.FPS, spec.FPS)
	for name, places := range w.Options {
		if value, given := spec.Options[name]; given {
			filled.set(places, value)
		}
	}
	// A unique name makes a server save the result again even if it is cached.
	if _, saves := filled[w.Result].Inputs["filename_prefix"]; saves {
		filled.set([]catalog.Place{{Node: w.Result, Input: "filename_prefix"}}, prefix)
	}
	return filled
}

func (g graph) set(places []catalog.Place, value any) {
	for _, place := range places {
		if n, there := g[place.Node]; there {
			if n.Inputs == nil {
				n.Inputs = map[string]any{}
			}
			n.Inputs[place.Input] = value
			g[place.Node] = n
		}
	}
}

func (g graph) leaveOut(ids []string) {
	for _, id := range ids {
		delete(g, id)
	}
	for _, n := range g {
		maps.DeleteFunc(n.Inputs, func(_ string, value any) bool {
			from, _, linked := link(value)
			return linked && slices.Contains(ids, from)
		})
	}
}
