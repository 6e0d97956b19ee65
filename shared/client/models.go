package client

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
)

type MediaModel struct {
	ID          string   `json:"id"`
	Aliases     []string `json:"aliases"`
	Description string   `json:"description"`
	// Kind is, for example, "text-to-video". Examples holds prompts to try. All of these fields may be empty.
	Kind     string   `json:"kind,omitempty"`
	Title    string   `json:"title,omitempty"`
	Examples []string `json:"examples,omitempty"`
	Price    *Price   `json:"price,omitempty"`
}

// Price is per "second" of the result, or per "edit" (docs/contract/jobs.md#prices).
type Price struct {
	Amount   float64            `json:"amount"`
	Per      string             `json:"per"`
	Currency string             `json:"currency"`
	Sizes    map[string]float64 `json:"sizes,omitempty"`
}

// MediaModels reads the media models from the service's OpenAPI document.
func (c *Client) MediaModels(ctx context.Context) ([]MediaModel, error) {
	var document struct {
		Paths map[string]struct {
			Post *struct {
				Summary    string `json:"summary"`
				AliasOf    string `json:"x-alias-of"`
				Deprecated bool   `json:"deprecated"`
				Model      struct {
					Kind, Title string
					Examples    []string
					Price       *Price
				} `json:"x-model"`
			} `json:"post"`
		} `json:"paths"`
	}
	if err := c.get(ctx, c.media(http.MethodGet, "/openapi.json", nil), &document); err != nil {
		return nil, err
	}
	models := map[string]*MediaModel{}
	of := func(id string) *MediaModel {
		if models[id] == nil {
			models[id] = &MediaModel{ID: id, Aliases: []string{}}
		}
		return models[id]
	}
	for path, operations := range document.Paths {
		name, found := strings.CutPrefix(path, "/v1/jobs/")
		if !found || operations.Post == nil || strings.Contains(name, "{") {
			continue
		}
		switch post := operations.Post; {
		case post.AliasOf == "":
			model := of(name)
			model.Description = post.Summary
			model.Kind, model.Title, model.Examples = post.Model.Kind, post.Model.Title, post.Model.Examples
			model.Price = post.Model.Price
		case !post.Deprecated:
			model := of(post.AliasOf)
			model.Aliases = append(model.Aliases, name)
		}
	}
	sorted := make([]MediaModel, 0, len(models))
	for _, model := range models {
		slices.Sort(model.Aliases)
		sorted = append(sorted, *model)
	}
	slices.SortFunc(sorted, func(a, b MediaModel) int { return cmp.Compare(a.ID, b.ID) })
	return sorted, nil
}

func (c *Client) ResolveModel(ctx context.Context, name string) (string, error) {
	encoded, err := jsonBody(map[string]string{"model": name})
	if err != nil {
		return "", err
	}
	request := c.media(http.MethodPost, "/v1/models/resolve", encoded)
	request.repeatable = true // the call changes nothing
	var resolved struct {
		ID string `json:"model_id"`
	}
	err = c.get(ctx, request, &resolved)
	return resolved.ID, err
}

// InferenceModel is a model of the gateway. Its lengths are in tokens.
type InferenceModel struct {
	ID              string   `json:"id"`
	MaxOutputLength int      `json:"max_output_length"`
	ContextLength   int      `json:"context_length"`
	Capabilities    []string `json:"capabilities"`
}

func (m InferenceModel) Chats() bool { return slices.Contains(m.Capabilities, "chat") }

// InferenceModels returns the gateway's models in catalog order.
func (c *Client) InferenceModels(ctx context.Context) ([]InferenceModel, error) {
	var page struct {
		Data []InferenceModel `json:"data"`
	}
	err := c.get(ctx, c.inference(http.MethodGet, "/v1/models", nil), &page)
	media := func(m InferenceModel) bool {
		return slices.Contains(m.Capabilities, "videos") || slices.Contains(m.Capabilities, "images/edits")
	}
	return slices.DeleteFunc(page.Data, media), err
}
