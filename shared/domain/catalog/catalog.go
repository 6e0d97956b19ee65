package catalog

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"cutroom/shared/domain/ascii"
)

const (
	maxFamily = 64
	maxName   = 128
)

// isFamily reports whether text is a valid CUTROOM_FAMILY (docs/contract/README.md#the-family-name).
func isFamily(text string) bool { return len(text) <= maxFamily && ascii.Only(text, "-") }

// isName reports whether text is valid as a model's id or alias, which must be a path segment.
func isName(text string) bool {
	return len(text) <= maxName && ascii.Only(text, "._-") && ascii.IsAlphanumeric(text[0])
}

const (
	seedField       = "seed"
	defaultCurrency = "USD"
	// maxSeed is the largest seed (docs/contract/limits.md#media).
	maxSeed = 4294967295
)

// Catalog is an immutable set of models.
type Catalog struct {
	Limits Limits
	// Currency is the ISO 4217 code of the currency of all prices.
	Currency string
	models   []*Model
	byName   map[string]*Model

	inferenceModels []*Inference
	bySlug          map[string]*Inference
}

func (c *Catalog) Models() []*Model { return c.models }

func (c *Catalog) Find(name string) (*Model, bool) {
	m, ok := c.byName[name]
	return m, ok
}

// First returns the first media model of a kind, which is the default for that kind.
func (c *Catalog) First(kind Kind) (*Model, bool) {
	for _, m := range c.models {
		if m.Kind == kind {
			return m, true
		}
	}
	return nil, false
}

func (c *Catalog) InferenceModels() []*Inference { return c.inferenceModels }

func (c *Catalog) Inference(slug string) (*Inference, bool) {
	m, ok := c.bySlug[slug]
	return m, ok
}

func (c *Catalog) Knows(name string) bool {
	_, media := c.byName[name]
	_, inference := c.bySlug[name]
	return media || inference
}

// Parse parses a catalog file and replaces $family. Its errors contain the line number.
func Parse(source []byte, family string) (*Catalog, error) {
	if err := checkFamily(family); err != nil {
		return nil, err
	}
	source = bytes.ReplaceAll(source, []byte(familyPlace), []byte(family))
	file, err := readFile(source)
	if err != nil {
		return nil, err
	}
	catalog, err := file.catalog()
	var wrong *pathError
	if errors.As(err, &wrong) {
		return nil, fmt.Errorf("line %d: %w", lineOf(source, wrong.path), wrong.err)
	}
	return catalog, err
}

func readFile(source []byte) (file catalogFile, err error) {
	if err := yaml.NewDecoder(bytes.NewReader(source), yaml.Strict()).Decode(&file); err != nil {
		return file, errors.New(yaml.FormatError(err, false, false))
	}
	return file, nil
}

// JSON converts a catalog file for ParseJSON. Functions read JSON at each start, because parsing
// YAML takes ten times as long and its parser adds 0.6 MB to the program.
func JSON(source []byte) ([]byte, error) {
	file, err := readFile(source)
	if err != nil {
		return nil, err
	}
	return json.Marshal(file)
}

// ParseJSON parses the output of JSON. Its errors contain no position.
func ParseJSON(source []byte, family string) (*Catalog, error) {
	if err := checkFamily(family); err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(bytes.ReplaceAll(source, []byte(familyPlace), []byte(family))))
	decoder.UseNumber() // converting to float could change a number
	decoder.DisallowUnknownFields()
	var file catalogFile
	if err := decoder.Decode(&file); err != nil {
		return nil, err
	}
	return file.catalog()
}

const familyPlace = "$family"

func checkFamily(family string) error {
	if !isFamily(family) {
		return fmt.Errorf("family %q must consist of 1 to %d letters, digits and '-'", family, maxFamily)
	}
	return nil
}

// These types describe the file. Their tags and the comments in catalog.yaml document the format.
type (
	catalogFile struct {
		Limits struct {
			Video struct {
				Duration      string
				Width, Height int
			}
			Image struct{ Pixels int }
		}
		Currency  string
		Forms     map[string]formEntry
		Models    []modelEntry
		Inference []inferenceEntry
	}
	formEntry struct {
		Fields     []fieldEntry
		URLEncoded bool              `yaml:"urlencoded"`
		ExactlyOne []string          `yaml:"exactly_one"`
		OnlyWith   map[string]string `yaml:"only_with"`
	}
	fieldEntry struct {
		Name, Also  string
		Type        FieldType
		Required    bool
		Default     any
		Min, Max    *int64
		Values      []string
		Description string
	}
	modelEntry struct {
		ID                string
		Aliases           []string
		DeprecatedAliases []string `yaml:"deprecated_aliases"`
		Kind              Kind
		Form              string
		Realtime          bool
		Generate          Generate
		Sizes             map[string]string
		FPS               int
		Duration          string
		Description       string
		Title             string
		Examples          []string
		Price             *priceEntry
		SessionPrice      string `yaml:"session_price"`
		ComfyUI           *workflowEntry
	}
)

// pathError is an error with a path in the file, from which lineOf finds the line.
type pathError struct {
	path string
	err  error
}

func (e *pathError) Error() string { return e.err.Error() }
func (e *pathError) Unwrap() error { return e.err }
func wrongAt(path, format string, args ...any) error {
	return &pathError{path, fmt.Errorf(format, args...)}
}

// lineOf returns the line number of a YAML path, or of its nearest parent that exists.
func lineOf(source []byte, path string) int {
	for ; path != "$" && path != ""; path = path[:max(strings.LastIndexAny(path, ".["), 0)] {
		p, err := yaml.PathString(path)
		if err != nil {
			continue
		}
		node, err := p.ReadNode(bytes.NewReader(source))
		if err == nil && node != nil && node.GetToken() != nil {
			return node.GetToken().Position.Line
		}
	}
	return 1
}

func (file *catalogFile) catalog() (*Catalog, error) {
	c := &Catalog{byName: map[string]*Model{}, bySlug: map[string]*Inference{}}
	duration, err := time.ParseDuration(file.Limits.Video.Duration)
	if err != nil || duration <= 0 {
		return nil, wrongAt("$.limits.video.duration",
			"limits: video duration %q is not a duration such as 5m", file.Limits.Video.Duration)
	}
	c.Limits = Limits{duration, file.Limits.Video.Width, file.Limits.Video.Height, file.Limits.Image.Pixels}
	if c.Limits.VideoWidth <= 0 || c.Limits.VideoHeight <= 0 || c.Limits.ImagePixels <= 0 {
		return nil, wrongAt("$.limits", "limits: width, height and pixels must be greater than 0")
	}
	if file.Currency != "" && !currencyForm().MatchString(file.Currency) {
		return nil, wrongAt("$.currency", "currency %.32q: must be an ISO 4217 code such as EUR", file.Currency)
	}
	c.Currency = cmp.Or(file.Currency, defaultCurrency)
	forms := map[string]*Form{}
	for name, entry := range file.Forms {
		if forms[name], err = entry.form(name); err != nil {
			return nil, err
		}
	}
	if len(file.Models) == 0 {
		return nil, wrongAt("$.models", "the catalog has no models")
	}
	for i, entry := range file.Models {
		path := fmt.Sprintf("$.models[%d]", i)
		m, err := entry.model(path, forms)
		if err != nil {
			return nil, err
		}
		if m.Price, err = entry.Price.price(m, file.Currency); err != nil {
			return nil, wrongAt(path+".price", "model %q: %w", m.ID, err)
		}
		if m.SessionPrice, err = entry.sessionPrice(file.Currency); err != nil {
			return nil, wrongAt(path+".session_price", "model %q: %w", m.ID, err)
		}
		if m.Workflow, err = entry.ComfyUI.workflow(m); err != nil {
			return nil, wrongAt(path+".comfyui", "model %q: comfyui: %w", m.ID, err)
		}
		for _, name := range m.Names() {
			if !isName(name) {
				return nil, wrongAt(path, "model %q: the name %q must consist of letters, digits, '.', '_' and '-'", m.ID, name)
			}
			if other, taken := c.byName[name]; taken {
				return nil, wrongAt(path, "model %q: the name %q already belongs to model %q", m.ID, name, other.ID)
			}
			c.byName[name] = m
		}
		c.models = append(c.models, m)
	}
	if err := c.inference(file.Inference); err != nil {
		return nil, err
	}
	return c, nil
}

func (entry formEntry) form(name string) (*Form, error) {
	form := &Form{Name: name, URLEncoded: entry.URLEncoded, ExactlyOne: entry.ExactlyOne, OnlyWith: entry.OnlyWith}
	path := "$.forms." + name
	for i, e := range entry.Fields {
		at := fmt.Sprintf("%s.fields[%d]", path, i)
		for _, taken := range []string{e.Name, e.Also} {
			if _, double := form.Field(taken); double && taken != "" {
				return nil, wrongAt(at, "form %s: the field name %q is used twice", name, taken)
			}
		}
		field, err := e.field()
		if err != nil {
			return nil, wrongAt(at, "form %s: field %q: %w", name, e.Name, err)
		}
		if entry.URLEncoded && field.Type.IsFile() {
			return nil, wrongAt(at, "form %s: field %q: a urlencoded form cannot have files", name, e.Name)
		}
		form.Fields = append(form.Fields, field)
	}
	for _, other := range entry.ExactlyOne {
		if _, ok := form.Field(other); !ok {
			return nil, wrongAt(path+".exactly_one", "form %s: exactly_one names %q, which is not a field", name, other)
		}
	}
	for field, with := range entry.OnlyWith {
		for _, other := range []string{field, with} {
			if _, ok := form.Field(other); !ok {
				return nil, wrongAt(path+".only_with", "form %s: only_with names %q, which is not a field", name, other)
			}
		}
	}
	return form, nil
}

func (e fieldEntry) field() (Field, error) {
	field := Field{
		Name: e.Name, Also: e.Also, Type: e.Type, Required: e.Required, Default: e.Default,
		Min: e.Min, Max: e.Max, Values: e.Values, Description: e.Description,
	}
	if e.Name == "" {
		return field, errors.New("the field has no name")
	}
	wrongDefault := fmt.Errorf("the default %v is not of the type %s", e.Default, e.Type)
	switch e.Type {
	case VideoFile, ImageFile:
		if e.Default != nil {
			return field, errors.New("a file cannot have a default")
		}
	case Text:
		if _, ok := e.Default.(string); !ok && e.Default != nil {
			return field, wrongDefault
		}
	case Integer:
		if e.Default != nil {
			n, err := strconv.ParseInt(fmt.Sprint(e.Default), 10, 64)
			if err != nil {
				return field, wrongDefault
			}
			field.Default = n
		}
	case Boolean:
		if _, ok := e.Default.(bool); !ok && e.Default != nil {
			return field, wrongDefault
		}
	case Choice:
		if len(e.Values) == 0 {
			return field, errors.New("a choice must have values")
		}
		known := e.Default == nil
		for _, value := range e.Values {
			known = known || value == e.Default
		}
		if !known {
			return field, fmt.Errorf("the default %v is not among the values", e.Default)
		}
	default:
		return field, fmt.Errorf("the type %q must be video, image, text, integer, boolean or choice", e.Type)
	}
	seedRange := func(n *int64) bool { return n != nil && *n >= 0 && *n <= maxSeed }
	if e.Name == seedField && (e.Type != Integer || !seedRange(e.Min) || !seedRange(e.Max)) {
		return field, fmt.Errorf("a seed must be an integer with a min and a max from 0 to %d", int64(maxSeed))
	}
	return field, nil
}

func (e modelEntry) model(path string, forms map[string]*Form) (*Model, error) {
	m := &Model{
		ID: e.ID, Aliases: e.Aliases, DeprecatedAliases: e.DeprecatedAliases, Kind: e.Kind, Form: forms[e.Form],
		Realtime: e.Realtime, Generate: e.Generate, Sizes: map[string]Size{}, FPS: e.FPS, Description: e.Description,
		Title: e.Title, Examples: e.Examples,
	}
	if m.Form == nil {
		return nil, wrongAt(path+".form", "model %q: unknown form %q", e.ID, e.Form)
	}
	switch e.Kind {
	case Restyle, Edit, TryOn, Clip, TextToVideo, ImageToVideo:
		if e.FPS < 1 || e.FPS > 120 {
			return nil, wrongAt(path, "model %q: fps must be from 1 to 120", e.ID)
		}
	case Image:
		if e.FPS != 0 || e.Realtime {
			return nil, wrongAt(path, "model %q: an image model must not set fps or realtime", e.ID)
		}
	default:
		return nil, wrongAt(path+".kind",
			"model %q: the kind %q must be restyle, edit, try-on, clip, text-to-video, image-to-video or image", e.ID, e.Kind)
	}
	switch {
	case e.Generate == NotGenerated,
		e.Generate == GenerateDeprecated && e.Kind != Image,
		e.Generate == GenerateImage && e.Kind == Image:
	default:
		return nil, wrongAt(path+".generate",
			"model %q: generate must be \"image\" or absent for an image, and \"deprecated\" or absent for a video", e.ID)
	}
	if err := e.sizes(path, m); err != nil {
		return nil, err
	}
	if err := m.checkData(path); err != nil {
		return nil, err
	}
	if makes := e.Kind == TextToVideo || e.Kind == ImageToVideo; makes || e.Duration != "" {
		duration, err := time.ParseDuration(e.Duration)
		if err != nil || duration <= 0 || duration > 5*time.Minute || !makes {
			return nil, wrongAt(path+".duration", "model %q: duration must be more than 0s and at most 5m, and is only for "+
				"text-to-video and image-to-video", e.ID)
		}
		m.Duration = duration
	}
	return m, nil
}

func (e modelEntry) sizes(path string, m *Model) error {
	for resolution, text := range e.Sizes {
		var size Size
		if _, err := fmt.Sscanf(text, "%dx%d", &size.Width, &size.Height); err != nil || size.String() != text ||
			size.Width < 16 || size.Height < 16 || size.Width > 8192 || size.Height > 8192 || size.Width%2+size.Height%2 != 0 {
			return wrongAt(path+".sizes",
				"model %q: the size %q must be two even numbers from 16 to 8192, such as 1280x720", e.ID, text)
		}
		m.Sizes[resolution] = size
	}
	field, ok := m.Form.Field("resolution")
	if !ok || field.Type != Choice || field.Default == nil {
		return wrongAt(path+".form", "model %q: its form must have a choice \"resolution\" with a default", e.ID)
	}
	for _, resolution := range field.Values {
		if _, ok := m.Sizes[resolution]; !ok {
			return wrongAt(path+".sizes", "model %q: the resolution %s of its form has no size", e.ID, resolution)
		}
	}
	return nil
}

// checkData checks that the form has a field for a file if the model edits a file, and no such field otherwise.
func (m *Model) checkData(path string) error {
	data, takesData := m.Form.Field("data")
	switch {
	case (m.Kind == TextToVideo) == takesData:
		return wrongAt(path+".form", "model %q: its form must have the file \"data\" unless the kind is text-to-video", m.ID)
	case takesData && data.Type != m.DataType():
		return wrongAt(path+".form", "model %q: \"data\" must have the file type that the model edits", m.ID)
	}
	return nil
}
