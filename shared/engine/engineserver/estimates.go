package engineserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/job"
	"cutroom/shared/engine"
	"cutroom/shared/platform/boundedjson"
	"cutroom/shared/platform/panics"
)

type EstimatesRequest struct {
	Edits []EstimatedEdit `json:"edits"`
}

type EstimatedEdit struct {
	Model     string       `json:"model"`
	Kind      catalog.Kind `json:"kind"`
	Reference bool         `json:"reference"`
	Width     int          `json:"width"`
	Height    int          `json:"height"`
	FPS       int          `json:"fps"`
	Lengths   []float64    `json:"lengths"`
}

// EstimatesResponse has one element per requested edit. An element is null if the server does not support the edit.
type EstimatesResponse struct {
	Estimates []*EditEstimate `json:"estimates"`
}

// EditEstimate holds an edit's run time in seconds for each length.
type EditEstimate struct {
	Seconds []float64 `json:"seconds"`
}

const maxEstimates = 1 << 20

var (
	_ engine.Estimator = (*Engine)(nil)
	_ engine.Estimator = (*Pool)(nil)
)

func (e *Engine) Estimates(ctx context.Context, asked []engine.Question) ([]*job.Estimate, error) {
	response, err := e.estimates(ctx, asked)
	if err != nil {
		return nil, fmt.Errorf("engineserver: estimates: %w", err)
	}
	if len(response.Estimates) != len(asked) {
		return nil, fmt.Errorf("engineserver: the server returned %d estimates for %d edits", len(response.Estimates), len(asked))
	}
	estimates := make([]*job.Estimate, len(asked))
	for i, reported := range response.Estimates {
		if reported == nil {
			continue
		}
		if len(reported.Seconds) != len(asked[i].Lengths) {
			return nil, fmt.Errorf("engineserver: the server returned %d estimates for %d lengths", len(reported.Seconds), len(asked[i].Lengths))
		}
		estimate := &job.Estimate{EditKind: asked[i].EditKind}
		for n, length := range asked[i].Lengths {
			estimate.Points = append(estimate.Points, job.EstimatePoint{Length: length, Takes: min(reported.Seconds[n], job.MaxTakes)})
		}
		if err := estimate.Validate(); err != nil {
			return nil, fmt.Errorf("engineserver: %w", err)
		}
		estimates[i] = estimate
	}
	return estimates, nil
}

func (e *Engine) estimates(ctx context.Context, asked []engine.Question) (reported EstimatesResponse, err error) {
	ctx, cancel := context.WithTimeout(ctx, healthTime)
	defer cancel()
	var body EstimatesRequest
	for _, question := range asked {
		body.Edits = append(body.Edits, EstimatedEdit{
			Model: question.Model, Kind: question.Kind, Reference: question.Reference,
			Width: question.Size.Width, Height: question.Size.Height, FPS: question.FPS, Lengths: question.Lengths,
		})
	}
	text, err := json.Marshal(body)
	if err != nil {
		return reported, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.base+"/v1/estimates", bytes.NewReader(text))
	if err != nil {
		return reported, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := e.client.Do(request)
	if err != nil {
		return reported, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return reported, fmt.Errorf("the engine server returned status %d", response.StatusCode)
	}
	return reported, boundedjson.Read(response.Body, maxEstimates, maxValues, &reported)
}

// Estimates asks servers in turn until one responds. All servers have the same models and cards.
func (p *Pool) Estimates(ctx context.Context, asked []engine.Question) ([]*job.Estimate, error) {
	var wrong error
	for _, m := range p.members {
		estimates, err := m.ask(ctx, asked)
		if err == nil {
			return estimates, nil
		}
		wrong = errors.Join(wrong, err)
	}
	return nil, wrong
}

func (m *member) ask(ctx context.Context, asked []engine.Question) (estimates []*job.Estimate, err error) {
	defer panics.Error(&err)
	return m.Engine.Estimates(ctx, asked)
}
