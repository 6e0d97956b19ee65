package console

import "cutroom/shared/domain/catalog"

// Settings describes the service for the page. URLs may be relative to the console's URL.
type Settings struct {
	// The URLs of the media service and the gateway.
	BaseURL      string `json:"base_url"`
	InferenceURL string `json:"inference_url"`
	// The URLs of the realtime page and the API documentation. Either may be empty.
	RealtimeURL string `json:"realtime_url"`
	DocsURL     string `json:"docs_url"`
	// MaxUpload is the maximum size of a file in a form, in bytes. Larger files are uploaded to a signed URL.
	MaxUpload int64 `json:"max_upload"`
	// Currency is an ISO 4217 code, or empty if there are no prices.
	Currency string  `json:"currency,omitempty"`
	Models   []Model `json:"models"`
}

type Model struct {
	ID          string       `json:"id"`
	Kind        catalog.Kind `json:"kind"`
	Description string       `json:"description"`
	Title       string       `json:"title,omitempty"`
	// Sizes maps each resolution to the width and height of the box around a landscape result. FPS is 0 for images.
	Sizes      map[string][2]int `json:"sizes"`
	FPS        int               `json:"fps,omitempty"`
	Examples   []string          `json:"examples,omitempty"`
	Price      *Price            `json:"price,omitempty"`
	Fields     []Field           `json:"fields"`
	URLEncoded bool              `json:"urlencoded,omitempty"`
	ExactlyOne []string          `json:"exactly_one,omitempty"`
	OnlyWith   map[string]string `json:"only_with,omitempty"`
}

// Price is charged per "second" of the result or per "edit".
type Price struct {
	Amount   float64           `json:"amount"`
	Per      catalog.PriceUnit `json:"per"`
	Currency string            `json:"currency"`
}

type Field struct {
	Name        string            `json:"name"`
	Type        catalog.FieldType `json:"type"`
	Required    bool              `json:"required,omitempty"`
	Default     any               `json:"default,omitempty"`
	Max         *int64            `json:"max,omitempty"`
	Values      []string          `json:"values,omitempty"`
	Description string            `json:"description"`
}

func Models(known *catalog.Catalog) []Model {
	models := []Model{}
	for _, row := range known.Models() {
		offered := Model{
			ID: row.ID, Kind: row.Kind, Description: row.Description, Title: row.Title, Examples: row.Examples,
			Sizes: map[string][2]int{}, FPS: row.FPS,
			URLEncoded: row.Form.URLEncoded, ExactlyOne: row.Form.ExactlyOne, OnlyWith: row.Form.OnlyWith,
		}
		if p := row.Price; p != nil {
			offered.Price = &Price{p.Amount(), p.Per, p.Currency}
		}
		for resolution, size := range row.Sizes {
			offered.Sizes[resolution] = [2]int{size.Width, size.Height}
		}
		for _, field := range row.Form.Fields {
			offered.Fields = append(offered.Fields, Field{
				Name: field.Name, Type: field.Type, Required: field.Required, Default: field.Default,
				Max: field.Max, Values: field.Values, Description: field.Description,
			})
		}
		models = append(models, offered)
	}
	return models
}
