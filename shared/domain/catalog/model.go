// Package catalog lists the service's models. It reads a single data file: catalog.yaml, or the
// operator's copy. No other code contains a model name or the family name.
package catalog

import (
	"cutroom/shared/domain/fault"
	"fmt"
	"math"
	"slices"
	"time"
)

// Kind is the task that a model performs. Engines decide by kind how to edit.
type Kind string

const (
	Restyle      Kind = "restyle"
	Edit         Kind = "edit"
	TryOn        Kind = "try-on"
	Clip         Kind = "clip"
	TextToVideo  Kind = "text-to-video"
	ImageToVideo Kind = "image-to-video"
	Image        Kind = "image"
)

type Generate string

const (
	// NotGenerated models are available only under /v1/jobs/.
	NotGenerated Generate = ""
	// GenerateImage models return the edited image in the response.
	GenerateImage Generate = "image"
	// GenerateDeprecated models return a video in the response, on a deprecated route.
	GenerateDeprecated Generate = "deprecated"
)

type Model struct {
	// ID includes the family name.
	ID string
	// DeprecatedAliases still work, but the documentation marks them as deprecated.
	Aliases, DeprecatedAliases []string
	Kind                       Kind
	Form                       *Form
	Realtime                   bool
	Generate                   Generate
	// Sizes maps a resolution to the landscape-oriented box that the result must fit.
	Sizes map[string]Size
	FPS   int // 0 for images
	// Duration is the length of the results of models that make a video without one. It is 0 for other models.
	Duration    time.Duration
	Description string
	// Title is a short display name. Examples holds sample prompts. Both may be empty.
	Title    string
	Examples []string
	// Price is nil if the operator set no price.
	Price *MediaPrice
	// SessionPrice is the price per second, in millionths of the currency. It is 0 for a model without a price.
	SessionPrice int64
	Workflow     *Workflow
}

func (m *Model) Names() []string {
	names := append([]string{m.ID}, m.Aliases...)
	return append(names, m.DeprecatedAliases...)
}

// LatestName returns the first alias, or the id if the model has no alias. The alias will move to
// this model's successor.
func (m *Model) LatestName() string {
	if len(m.Aliases) > 0 {
		return m.Aliases[0]
	}
	return m.ID
}

func (m *Model) DataType() FieldType {
	if m.Kind == Image || m.Kind == ImageToVideo {
		return ImageFile
	}
	return VideoFile
}

// These routes of OpenAI's API are for media models (docs/clients.md#images-and-videos-with-openais-client).
const (
	ImageEdits       Route = "images/edits"
	ImageGenerations Route = "images/generations"
	Videos           Route = "videos"
)

// Capabilities returns the routes of the inference address that serve the model.
func (m *Model) Capabilities() []Route {
	if m.Kind != Image {
		return []Route{Videos}
	}
	if data, _ := m.Form.Field(DataField); data.Required {
		return []Route{ImageEdits}
	}
	return []Route{ImageEdits, ImageGenerations}
}

type Limits struct {
	VideoDuration           time.Duration
	VideoWidth, VideoHeight int
	ImagePixels             int
}

type Size struct{ Width, Height int }

func (s Size) String() string { return fmt.Sprintf("%dx%d", s.Width, s.Height) }

// Portrait swaps width and height if the size is wider than it is high.
func (s Size) Portrait() Size {
	if s.Width > s.Height {
		return Size{s.Height, s.Width}
	}
	return s
}

// Fit returns the size of a result (docs/contract/media.md#models). It is the largest picture that
// has even sides and the input's aspect ratio and fits the box. For a portrait input, the box is
// rotated. The result may be larger than the input.
func (s Size) Fit(input Size) Size {
	box := s
	if input.Height > input.Width {
		box = s.Portrait()
	}
	if input.Width <= 0 || input.Height <= 0 {
		return box
	}
	// Use integers, so that the result does not depend on floating-point rounding.
	width, height := box.Width, nearestEven(box.Width*input.Height, input.Width)
	if box.Width*input.Height > box.Height*input.Width {
		width, height = nearestEven(box.Height*input.Width, input.Height), box.Height
	}
	return Size{min(width, box.Width), min(height, box.Height)}
}

// SourceResolution keeps the input's size, unless the model's size for this resolution is smaller. It keeps the
// input's frame rate, up to maxSourceFPS.
const SourceResolution = "source"

const maxSourceFPS = 60

// Plan is a result's size in pixels and its frame rate, which is 0 for an image.
type Plan struct {
	Width  int `json:"width"`
	Height int `json:"height"`
	FPS    int `json:"fps,omitempty"`
}

// Plan returns the plan for a resolution and an orientation, which may be "". The parameters input and rate are zero
// for requests without an input file.
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

func nearestEven(a, b int) int { return max(2, (a+b)/(2*b)*2) }

type FieldType string

const (
	VideoFile FieldType = "video"
	ImageFile FieldType = "image"
	// AnyFile is used in forms that belong to no model.
	AnyFile FieldType = "file"
	Text    FieldType = "text"
	Integer FieldType = "integer"
	Boolean FieldType = "boolean"
	Choice  FieldType = "choice"
)

func (t FieldType) IsFile() bool { return t == VideoFile || t == ImageFile || t == AnyFile }

type Field struct {
	Name string
	// Also is an alternative name for the field, or empty.
	Also     string
	Type     FieldType
	Required bool
	// Default is a string, bool or int64, or nil.
	Default any
	// Min and Max limit an integer. For text, Max limits the number of code points.
	Min, Max    *int64
	Values      []string
	Description string
}

// These fields mean the same in every form.
const (
	PromptField = "prompt"
	// DataField is the file to edit. ReferenceField is a picture that shows the desired result, or for image-to-video
	// the last picture of the result.
	DataField       = "data"
	ReferenceField  = "reference_image"
	ResolutionField = "resolution"
	// WebhookField is accepted for every job, so the forms in the catalog do not list it.
	WebhookField = "webhook_url"
)

// Form lists the fields of a request. Errors are reported in the order of the fields (docs/contract/media.md#forms).
type Form struct {
	Name   string
	Fields []Field
	// URLEncoded forms are documented as application/x-www-form-urlencoded. Multipart is accepted too.
	URLEncoded bool
	// A request must contain exactly one of these fields.
	ExactlyOne []string
	// OnlyWith maps a field to another field that it requires.
	OnlyWith map[string]string
}

// Suffices reports whether a request with exactly these fields has all required fields of the form
// and no unknown fields.
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

func (f *Form) Field(name string) (*Field, bool) {
	for i := range f.Fields {
		if field := &f.Fields[i]; field.Name == name || field.Also != "" && field.Also == name {
			return field, true
		}
	}
	return nil, false
}

func UnknownModel(name string) *fault.Error {
	return fault.New(fault.NotFound, "The model %.128q does not exist.", name)
}
