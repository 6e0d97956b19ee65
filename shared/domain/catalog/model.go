// Package catalog lists the service's models with their aliases, forms, output sizes and input
// limits. It is read from one data file (catalog.yaml, or the operator's copy). No other code
// contains the name of a model or of the family.
package catalog

import (
	"cutroom/shared/domain/fault"
	"fmt"
	"math"
	"slices"
	"time"
)

// Kind is a model's task. Engines choose their work by it.
type Kind string

const (
	Restyle     Kind = "restyle"
	Edit        Kind = "edit"
	TryOn       Kind = "try-on"
	Clip        Kind = "clip"
	TextToVideo Kind = "text-to-video"
	Image       Kind = "image"
)

// Generate is how a model is served below /v1/generate/.
type Generate string

const (
	// NotGenerated models are only under /v1/jobs/.
	NotGenerated Generate = ""
	// GenerateImage models answer with the edited image.
	GenerateImage Generate = "image"
	// GenerateDeprecated models answer with a video, on a deprecated route.
	GenerateDeprecated Generate = "deprecated"
)

type Model struct {
	// ID is the canonical id, including the family's name.
	ID string
	// Aliases are other names of the model. DeprecatedAliases still work, but documents mark them.
	Aliases, DeprecatedAliases []string
	Kind                       Kind
	Form                       *Form
	Realtime                   bool
	Generate                   Generate
	// Sizes maps a resolution to the landscape box of the result.
	Sizes map[string]Size
	// FPS is the frame rate of the result; 0 for images.
	FPS int
	// Duration is the length of a result without an input, else 0.
	Duration    time.Duration
	Description string
	// Title is a short name for people. Examples are prompts to try. Both may be empty.
	Title    string
	Examples []string
	// Price is nil if the operator set no price.
	Price *MediaPrice
	// SessionPrice is the price of a second of a realtime session, in millionths of the currency, or 0.
	SessionPrice int64
	// Workflow is the model's ComfyUI workflow, or nil.
	Workflow *Workflow
}

func (m *Model) Names() []string {
	names := append([]string{m.ID}, m.Aliases...)
	return append(names, m.DeprecatedAliases...)
}

// LatestName returns the name that will also mean this model's successor: its first alias, or its
// id without an alias.
func (m *Model) LatestName() string {
	if len(m.Aliases) > 0 {
		return m.Aliases[0]
	}
	return m.ID
}

func (m *Model) DataType() FieldType {
	if m.Kind == Image {
		return ImageFile
	}
	return VideoFile
}

// Limits limits inputs (docs/contract/media.md#models).
type Limits struct {
	VideoDuration           time.Duration
	VideoWidth, VideoHeight int
	ImagePixels             int
}

// Size is a picture's size in pixels.
type Size struct{ Width, Height int }

func (s Size) String() string { return fmt.Sprintf("%dx%d", s.Width, s.Height) }

// Portrait returns the size with its sides swapped if it is wider than high.
func (s Size) Portrait() Size {
	if s.Width > s.Height {
		return Size{s.Height, s.Width}
	}
	return s
}

// Fit returns the size of a result (docs/contract/media.md#models): the largest picture with even
// sides and the input's aspect ratio that fits the box, whose sides are swapped for a portrait
// input. It may enlarge the input. Each side is at least 2.
func (s Size) Fit(input Size) Size {
	box := s
	if input.Height > input.Width {
		box = s.Portrait()
	}
	if input.Width <= 0 || input.Height <= 0 {
		return box
	}
	// Use integers: the result must not depend on floating point.
	width, height := box.Width, nearestEven(box.Width*input.Height, input.Width)
	if box.Width*input.Height > box.Height*input.Width {
		width, height = nearestEven(box.Height*input.Width, input.Height), box.Height
	}
	return Size{min(width, box.Width), min(height, box.Height)}
}

// SourceResolution is the resolution whose results keep the size and the frame rate of their input, up
// to the size that the catalog gives it and maxSourceFPS.
const SourceResolution = "source"

const maxSourceFPS = 60

// Plan is the size of a result in pixels and its frames per second; 0 for an image.
type Plan struct {
	Width  int `json:"width"`
	Height int `json:"height"`
	FPS    int `json:"fps,omitempty"`
}

// Plan returns the plan for a resolution and an orientation, which may be "". input and rate, in
// frames per second, belong to the input, and are zero without one.
func (m *Model) Plan(resolution, orientation string, input Size, rate float64) Plan {
	box, fps := m.Sizes[resolution], m.FPS
	size := box.Fit(input)
	if resolution == SourceResolution {
		if size.Width >= input.Width && input.Width > 0 {
			size = Size{nearestEven(input.Width, 1), nearestEven(input.Height, 1)}
		}
		if fps > 0 && rate > 0 {
			fps = min(max(1, int(math.Round(rate))), maxSourceFPS)
		}
	}
	if input == (Size{}) && orientation == "portrait" {
		size = size.Portrait()
	}
	return Plan{size.Width, size.Height, fps}
}

// nearestEven rounds a/b to the nearest even number that is at least 2.
func nearestEven(a, b int) int {
	return max(2, (a+b)/(2*b)*2)
}

// FieldType is how a field's text or bytes are read.
type FieldType string

const (
	VideoFile FieldType = "video"
	ImageFile FieldType = "image"
	// AnyFile is for forms without a model: a model edits one kind of media.
	AnyFile FieldType = "file"
	Text    FieldType = "text"
	Integer FieldType = "integer"
	Boolean FieldType = "boolean"
	Choice  FieldType = "choice"
)

// IsFile reports whether the field takes a file part.
func (t FieldType) IsFile() bool { return t == VideoFile || t == ImageFile || t == AnyFile }

type Field struct {
	Name string
	// Also is a second name of the field, or empty.
	Also     string
	Type     FieldType
	Required bool
	// Default is the value of an absent field, a string, bool or int64, or nil.
	Default any
	// Min and Max limit an integer. Max limits a text's code points.
	Min, Max    *int64
	Values      []string
	Description string
}

// Names of fields that mean the same in every form.
const (
	PromptField = "prompt"
	// DataField is the input file, ReferenceField a picture of the desired result, ResolutionField
	// the choice among the model's sizes.
	DataField       = "data"
	ReferenceField  = "reference_image"
	ResolutionField = "resolution"
	// WebhookField is a field of every job. No form of the catalog lists it.
	WebhookField = "webhook_url"
)

// Form lists the fields of a model's requests, in the order of errors (docs/contract/media.md#forms).
type Form struct {
	Name   string
	Fields []Field
	// URLEncoded forms are documented as application/x-www-form-urlencoded;
	// multipart is accepted too.
	URLEncoded bool
	// ExactlyOne names fields. A request must have exactly one of them.
	ExactlyOne []string
	// OnlyWith maps a field to another that it requires.
	OnlyWith map[string]string
}

// Suffices reports whether a request with exactly these fields fits the form. It checks only names.
func (f *Form) Suffices(names ...string) bool {
	for _, field := range f.Fields {
		if field.Required && !slices.Contains(names, field.Name) {
			return false
		}
	}
	for _, name := range names {
		if _, known := f.Field(name); !known {
			return false
		}
	}
	return true
}

// Field returns the field with the name or second name.
func (f *Form) Field(name string) (*Field, bool) {
	for i := range f.Fields {
		if field := &f.Fields[i]; field.Name == name || field.Also != "" && field.Also == name {
			return field, true
		}
	}
	return nil, false
}

func UnknownModel(name string) *fault.Error {
	return fault.New(fault.NotFound, "There is no model %.128q.", name)
}
