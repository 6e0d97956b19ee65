package c2pa

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"time"

	"cutroom/shared/domain/origin"
	"cutroom/shared/engine"
)

// IPTC digital source types and their URL prefix.
const (
	sourceTypes = "http://cv.iptc.org/newscodes/digitalsourcetype/"

	// drawn is for results that a program creates. enhanced is for results that it edits.
	drawn, enhanced = "algorithmicMedia", "algorithmicallyEnhanced"
)

// These names are not defined by C2PA.
const (
	modelName = "cutroom.model"
	hashName  = "cutroom.sha256"
)

type work struct {
	spec       engine.Spec
	made       engine.Outcome
	mime       string
	inputs     []input
	generative bool
	at         time.Time
	// bare means that the inputs' credentials are omitted.
	bare bool
}

func (w work) sourceType() string {
	switch {
	case w.generative && w.spec.Data != nil:
		return origin.Composite
	case w.generative:
		return origin.Generated
	case w.spec.Data != nil:
		return enhanced
	}
	return drawn
}

type ingredient struct {
	Label        string            `json:"label"`
	Title        string            `json:"title"`
	Format       string            `json:"format"`
	Relationship string            `json:"relationship"`
	Metadata     map[string]string `json:"metadata"`
}

func (in input) ingredient() ingredient {
	return ingredient{
		Label: in.label, Title: in.label, Format: in.mime, Relationship: in.relationship,
		Metadata: map[string]string{hashName: in.sha256},
	}
}

func (in input) json() string {
	text, _ := json.Marshal(in.ingredient()) // strings always encode
	return string(text)
}

type action struct {
	Action     string         `json:"action"`
	When       string         `json:"when"`
	SourceType string         `json:"digitalSourceType,omitempty"`
	Agent      map[string]any `json:"softwareAgent,omitempty"`
	Parameters map[string]any `json:"parameters,omitempty"`
}

func (w work) actions() []action {
	when := w.at.UTC().Format(time.RFC3339)
	last := action{
		Action: "c2pa.created", When: when, SourceType: sourceTypes + w.sourceType(),
		Agent: map[string]any{"name": w.made.Engine}, Parameters: map[string]any{modelName: w.spec.Model},
	}
	var before []action
	var used []string
	for _, in := range w.inputs {
		if in.relationship != "parentOf" {
			used = append(used, in.label)
			continue
		}
		before = append(before, action{
			Action: "c2pa.opened", When: when, Parameters: map[string]any{"ingredientIds": []string{in.label}},
		})
		last.Action = "c2pa.edited"
	}
	if used != nil {
		last.Parameters["ingredientIds"] = used
	}
	return append(before, last)
}

func (w work) manifest(version string) (string, error) {
	type assertion struct {
		Label string `json:"label"`
		Data  any    `json:"data"`
	}
	generator := map[string]string{"name": "Cutroom"}
	if version != "" {
		generator["version"] = version
	}
	definition := struct {
		Generator   []map[string]string `json:"claim_generator_info"`
		Format      string              `json:"format"`
		Ingredients []ingredient        `json:"ingredients,omitempty"`
		Assertions  []assertion         `json:"assertions"`
	}{
		Generator:  []map[string]string{generator},
		Format:     w.mime,
		Assertions: []assertion{{"c2pa.actions.v2", map[string]any{"actions": w.actions()}}},
	}
	if w.bare {
		for _, in := range w.inputs {
			definition.Ingredients = append(definition.Ingredients, in.ingredient())
		}
	}
	text, err := json.Marshal(definition)
	if err != nil {
		return "", fmt.Errorf("encode the manifest: %w", err)
	}
	return string(text), nil
}

func picture() []byte {
	var out bytes.Buffer
	_ = png.Encode(&out, image.NewGray(image.Rect(0, 0, 8, 8))) // writing to a buffer cannot fail
	return out.Bytes()
}
