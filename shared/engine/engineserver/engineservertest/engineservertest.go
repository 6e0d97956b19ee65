// Package engineservertest is a fake engine server for tests. It edits with any engine.
package engineservertest

import (
	"encoding/json"
	"net/http"
	"os"
	"sync"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/job"
	"cutroom/shared/domain/media"
	"cutroom/shared/engine"
	"cutroom/shared/engine/engineserver"
)

// Handler serves runs with the given engine. It also serves the engine's estimates if there are any.
func Handler(e engine.Engine) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("POST /v1/runs", func(w http.ResponseWriter, r *http.Request) {
		var request engineserver.Request
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
			http.Error(w, err.Error(), http.StatusUnprocessableEntity)
			return
		}
		lines := &lines{w: w}
		spec := specOf(request)
		report, err := e.Run(r.Context(), spec, func(p engine.Progress) {
			lines.write(engineserver.Line{Progress: &p.Fraction, Stage: p.Stage, Preview: p.Preview})
		})
		if err != nil {
			failure := engine.AsError(err)
			lines.write(
				engineserver.Line{
					Error: &engineserver.Failure{Code: failure.Code, Message: failure.Message, Retryable: failure.Retryable},
				},
			)
			return
		}
		result := engineserver.Result{Engine: report.Engine, Understood: report.Understood, Notice: report.Notice}
		if info, err := os.Stat(spec.Output); err == nil {
			result.Bytes = info.Size()
		}
		lines.write(engineserver.Line{Result: &result})
	})
	if estimator := engine.EstimatorOf(e); estimator != nil {
		mux.HandleFunc("POST /v1/estimates", func(w http.ResponseWriter, r *http.Request) { estimate(w, r, estimator) })
	}
	return mux
}

func estimate(w http.ResponseWriter, r *http.Request, by engine.Estimator) {
	var request engineserver.EstimatesRequest
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		http.Error(w, err.Error(), http.StatusUnprocessableEntity)
		return
	}
	var asked []engine.Question
	for _, edit := range request.Edits {
		asked = append(asked, engine.Question{
			EditKind: job.EditKind{Model: edit.Model, Reference: edit.Reference}, Kind: edit.Kind,
			Size: catalog.Size{Width: edit.Width, Height: edit.Height}, FPS: edit.FPS, Lengths: edit.Lengths,
		})
	}
	estimates, err := by.Estimates(r.Context(), asked)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	answer := engineserver.EstimatesResponse{Estimates: make([]*engineserver.EditEstimate, len(estimates))}
	for i, one := range estimates {
		if one == nil {
			continue
		}
		answer.Estimates[i] = &engineserver.EditEstimate{}
		for _, point := range one.Points {
			answer.Estimates[i].Seconds = append(answer.Estimates[i].Seconds, point.Takes)
		}
	}
	_ = json.NewEncoder(w).Encode(answer) // this fails if the caller has disconnected
}

type lines struct {
	mu sync.Mutex
	w  http.ResponseWriter
}

func (l *lines) write(line engineserver.Line) {
	l.mu.Lock()
	defer l.mu.Unlock()
	// Both calls fail only if the caller has disconnected. In that case the run's context ends.
	_ = json.NewEncoder(l.w).Encode(line)
	_ = http.NewResponseController(l.w).Flush()
}

func specOf(r engineserver.Request) engine.Spec {
	return engine.Spec{
		Job: r.Job, Model: r.Model, Kind: r.Kind, Prompt: r.Prompt, Seed: r.Seed, Options: r.Options,
		Data: inputOf(r, r.Data), Reference: inputOf(r, r.Reference),
		Size: catalog.Size{Width: r.Width, Height: r.Height}, FPS: r.FPS, Duration: seconds(r.Duration),
		PreviewEvery: seconds(r.PreviewEvery), Folder: r.Folder, Output: r.Output,
	}
}

func inputOf(r engineserver.Request, input *engineserver.Input) *engine.Input {
	if input == nil {
		return nil
	}
	return &engine.Input{Path: input.Path, MIME: input.MIME, Info: media.Info{
		Width: r.Width, Height: r.Height, Duration: seconds(r.Duration),
	}}
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
