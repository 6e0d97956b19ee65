package comfyui

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"path"
	"slices"

	"cutroom/shared/engine"
	"cutroom/shared/platform/panics"
)

// maxLacks limits how many missing requirements of a workflow are reported.
const maxLacks = 20

type class struct {
	Input struct {
		Required map[string]inputType `json:"required"`
		Optional map[string]inputType `json:"optional"`
	} `json:"input"`
	Output []json.RawMessage `json:"output"`
}

// inputType describes an input of a node class: its type or a list of its possible values, then its options.
type inputType []json.RawMessage

func (t inputType) values() (values []any, known bool) {
	if len(t) == 0 {
		return nil, false
	}
	if json.Unmarshal(t[0], &values) == nil {
		return values, true
	}
	var kind string
	var options struct {
		Options []any `json:"options"`
	}
	if len(t) < 2 || json.Unmarshal(t[0], &kind) != nil || kind != "COMBO" || json.Unmarshal(t[1], &options) != nil {
		return nil, false
	}
	return options.Options, options.Options != nil
}

func (e *Engine) Inspect(ctx context.Context) []engine.Inspection {
	var found []engine.Inspection
	for _, s := range e.pool.servers {
		inspection := engine.Inspection{Server: s.base, Lacks: map[string][]string{}}
		for _, id := range slices.Sorted(maps.Keys(e.workflows)) {
			lacks, err := s.inspect(ctx, e.workflows[id])
			if err != nil {
				inspection.Err = err
				break
			}
			if len(lacks) > 0 {
				inspection.Lacks[id] = lacks
			}
		}
		found = append(found, inspection)
	}
	return found
}

func (s *server) inspect(ctx context.Context, w *workflow) (lacks []string, err error) {
	defer panics.Error(&err)
	l := s.check(ctx, w)
	return l.lacks, l.err
}

// lacks lists a workflow's requirements that the server lacks. An empty list is cached until a run is rejected.
func (s *server) lacks(ctx context.Context, w *workflow) ([]string, error) {
	s.mu.Lock()
	complete := s.complete[w]
	s.mu.Unlock()
	if complete {
		return nil, nil
	}
	classes := map[string]*class{}
	for _, n := range w.graph {
		if _, asked := classes[n.Class]; asked {
			continue
		}
		var known map[string]*class
		if err := s.get(ctx, "/object_info/"+url.PathEscape(n.Class), &known); err != nil {
			return nil, err
		}
		classes[n.Class] = known[n.Class]
	}
	lacks := w.missing(classes)
	s.setComplete(w, len(lacks) == 0)
	return lacks[:min(len(lacks), maxLacks)], nil
}

func (s *server) setComplete(w *workflow, complete bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.complete[w] = complete
}

func (w *workflow) missing(classes map[string]*class) []string {
	filledIn := map[string]bool{}
	for _, place := range w.Places() {
		filledIn[place.String()] = true
	}
	var lacks []string
	for _, id := range slices.Sorted(maps.Keys(w.graph)) {
		n := w.graph[id]
		c := classes[n.Class]
		if c == nil {
			lacks = append(lacks, fmt.Sprintf("the node class %q", n.Class))
			continue
		}
		at := func(input string) string { return fmt.Sprintf("%.100q of node %s (%s)", input, id, n.Class) }
		for _, name := range slices.Sorted(maps.Keys(n.Inputs)) {
			for _, one := range missingValue(c.input(name), n.Inputs[name], filledIn[id+"."+name], at(name)) {
				lacks = append(lacks, n.withSource(one, n.Inputs[name]))
			}
			if from, output, linked := link(n.Inputs[name]); linked {
				if source := classes[w.graph[from].Class]; source != nil && output >= len(source.Output) {
					lacks = append(lacks, fmt.Sprintf("output %d of node %s (%s)", output, from, w.graph[from].Class))
				}
			}
		}
		for _, name := range slices.Sorted(maps.Keys(c.Input.Required)) {
			if _, given := n.Inputs[name]; !given && !filledIn[id+"."+name] {
				lacks = append(lacks, "a value for the input "+at(name))
			}
		}
		for _, place := range w.Places() {
			if place.Node == id && c.input(place.Input) == nil {
				lacks = append(lacks, "the input "+at(place.Input))
			}
		}
	}
	slices.Sort(lacks)
	return slices.Compact(lacks)
}

// modelFolders are ComfyUI's folders in models/, by the class of the node that loads a file from them.
var modelFolders = map[string]string{
	"CheckpointLoaderSimple": "checkpoints", "CLIPLoader": "text_encoders", "UNETLoader": "diffusion_models",
	"FrameInterpolationModelLoader": "frame_interpolation", "LoraLoaderModelOnly": "loras", "VAELoader": "vae",
}

// withSource adds to a missing value where to fetch it, if the value is the node's model file. If the folder is known,
// the text does not name the node, because several nodes may load the same file.
func (n node) withSource(lack string, value any) string {
	name := fmt.Sprint(value)
	if n.Meta.URL == "" || path.Ext(name) != path.Ext(n.Meta.URL) {
		return lack
	}
	if folder := modelFolders[n.Class]; folder != "" {
		lack = fmt.Sprintf("models/%s/%.200s", folder, name)
	}
	return lack + ": fetch it from " + n.Meta.URL
}

func (c *class) input(name string) inputType {
	if t, known := c.Input.Required[name]; known {
		return t
	}
	return c.Input.Optional[name]
}

// missingValue reports an input's value, such as a model file, that the server does not have.
func missingValue(t inputType, value any, filledIn bool, at string) []string {
	if _, _, linked := link(value); linked || filledIn {
		return nil
	}
	values, known := t.values()
	if !known || slices.ContainsFunc(values, func(one any) bool { return fmt.Sprint(one) == fmt.Sprint(value) }) {
		return nil
	}
	return []string{fmt.Sprintf("%.200q for %s", fmt.Sprint(value), at)}
}
