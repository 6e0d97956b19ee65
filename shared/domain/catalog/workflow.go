package catalog

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Workflow lists the node inputs in a ComfyUI workflow that receive an edit's values (docs/comfyui.md#the-catalog).
type Workflow struct {
	// File is the path of a workflow in API format.
	File string
	// Data and Reference receive the names of the uploaded input and reference image. Values that
	// the workflow does not use have no places.
	Prompt, Seed, Data, Reference []Place
	// These places receive the result's size in pixels, the number of frames that the model makes, and the result's
	// frames per second. They are empty if the workflow computes the values itself.
	Width, Height, Frames, FPS []Place
	Options                    map[string][]Place
	// WithoutReference lists the nodes to omit if there is no reference image.
	WithoutReference []string
	Result           string
	Multiple         int // the width and height must be divisible by this; at least 2
	FrameStep        int // at least 1; the number of frames is 1 plus a multiple of this
	MaxFrames        int // 0 means no limit
	// Interpolate is the result's frame rate divided by the rate of the frames that the model makes, at least 1. The
	// workflow itself makes the frames in between.
	Interpolate int
}

type Place struct{ Node, Input string }

func (p Place) String() string { return p.Node + "." + p.Input }

func (w *Workflow) Places() []Place {
	all := slices.Concat(w.Prompt, w.Seed, w.Data, w.Reference, w.Width, w.Height, w.Frames, w.FPS)
	for _, name := range slices.Sorted(maps.Keys(w.Options)) {
		all = append(all, w.Options[name]...)
	}
	return all
}

type workflowEntry struct {
	Workflow                                                  string
	Prompt, Seed, Data, Reference, Width, Height, Frames, FPS places
	Options                                                   map[string]places
	WithoutReference                                          names `yaml:"without_reference"`
	Result                                                    string
	Multiple                                                  int
	FrameStep                                                 int `yaml:"frame_step"`
	MaxFrames                                                 int `yaml:"max_frames"`
	Interpolate                                               int
}

// names is one name or a list of names in YAML.
type names []string

func (n *names) UnmarshalYAML(read func(any) error) error {
	var one string
	if read(&one) == nil {
		*n = names{one}
		return nil
	}
	return read((*[]string)(n))
}

// places is one place or a list of places. Each is written as "node.input".
type places names

func (p *places) UnmarshalYAML(read func(any) error) error { return (*names)(p).UnmarshalYAML(read) }

func (p places) parse() (parsed []Place, err error) {
	for _, text := range p {
		node, input, found := strings.Cut(text, ".")
		if !found || node == "" || input == "" {
			return nil, fmt.Errorf("%.64q must be the id of a node and the name of an input, such as 6.text", text)
		}
		parsed = append(parsed, Place{node, input})
	}
	return parsed, nil
}

const mostMultiple, mostFrames = 256, 100_000

func (e *workflowEntry) workflow(m *Model) (*Workflow, error) {
	if e == nil {
		return nil, nil //nolint:nilnil // a model without a workflow
	}
	w := &Workflow{
		File: e.Workflow, WithoutReference: e.WithoutReference, Result: e.Result,
		Multiple: max(e.Multiple, 2), FrameStep: max(e.FrameStep, 1), MaxFrames: e.MaxFrames,
		Interpolate: max(e.Interpolate, 1),
	}
	if err := e.places(w, m); err != nil {
		return nil, err
	}
	switch {
	case w.File == "":
		return nil, errors.New("workflow is missing: set it to the name of a workflow file in API format")
	case w.Result == "":
		return nil, errors.New("result is missing: set the node whose output is the result")
	case len(w.Prompt) == 0:
		return nil, errors.New("prompt is missing: set the place for the prompt")
	case (m.Kind == TextToVideo) != (len(w.Data) == 0):
		return nil, errors.New("data must say where the input goes, except for the kind text-to-video, which has none")
	case len(w.WithoutReference) > 0 && len(w.Reference) == 0:
		return nil, errors.New("without_reference requires reference, which says where the reference image goes")
	case m.Kind == Image && len(w.Frames)+len(w.FPS)+e.FrameStep+e.MaxFrames+e.Interpolate > 0:
		return nil, errors.New("an image model must not set frames")
	case e.Multiple < 0 || e.Multiple > mostMultiple || e.Multiple%2 != 0:
		return nil, fmt.Errorf("multiple must be even and at most %d", mostMultiple)
	case e.FrameStep < 0 || e.MaxFrames < 0 || e.FrameStep > mostFrames || e.MaxFrames > mostFrames:
		return nil, fmt.Errorf("frame_step and max_frames must be from 0 to %d", mostFrames)
	case e.Interpolate < 0 || m.FPS%w.Interpolate != 0:
		return nil, errors.New("interpolate must divide fps")
	}
	return w, nil
}

func (e *workflowEntry) places(w *Workflow, m *Model) (err error) {
	for _, value := range []struct {
		name string
		text places
		to   *[]Place
	}{
		{"prompt", e.Prompt, &w.Prompt}, {"seed", e.Seed, &w.Seed}, {"data", e.Data, &w.Data},
		{"reference", e.Reference, &w.Reference}, {"width", e.Width, &w.Width}, {"height", e.Height, &w.Height},
		{"frames", e.Frames, &w.Frames}, {"fps", e.FPS, &w.FPS},
	} {
		if *value.to, err = value.text.parse(); err != nil {
			return fmt.Errorf("%s: %w", value.name, err)
		}
	}
	w.Options = map[string][]Place{}
	for name, text := range e.Options {
		if _, known := m.Form.Field(name); !known {
			return fmt.Errorf("options: the form %s has no field %.64q", m.Form.Name, name)
		}
		if w.Options[name], err = text.parse(); err != nil {
			return fmt.Errorf("options: %s: %w", name, err)
		}
	}
	return nil
}
