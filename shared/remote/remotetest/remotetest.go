// Package remotetest is an engine server for tests: it speaks the protocol of
// package remote and has any engine do the work.
package remotetest

import (
	"encoding/json"
	"net/http"
	"os"
	"sync"
	"time"

	"cutroom/shared/engine"
	"cutroom/shared/media"
	"cutroom/shared/model"
	"cutroom/shared/remote"
)

// Handler serves runs by an engine.
func Handler(e engine.Engine) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("POST /v1/runs", func(w http.ResponseWriter, r *http.Request) {
		var request remote.Request
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
			http.Error(w, err.Error(), http.StatusUnprocessableEntity)
			return
		}
		lines := &lines{w: w}
		spec := specOf(request)
		err := e.Run(r.Context(), spec, func(p engine.Progress) {
			lines.write(remote.Line{Progress: &p.Fraction, Stage: p.Stage})
		})
		if err != nil {
			failure := engine.AsError(err)
			lines.write(remote.Line{Error: &remote.Failure{Code: failure.Code, Message: failure.Message, Retryable: failure.Retryable}})
			return
		}
		var result remote.Result
		if info, err := os.Stat(spec.Output); err == nil {
			result.Bytes = info.Size()
		}
		lines.write(remote.Line{Result: &result})
	})
	return mux
}

// lines writes the lines of an answer, each at once.
type lines struct {
	mu sync.Mutex
	w  http.ResponseWriter
}

func (l *lines) write(line remote.Line) {
	l.mu.Lock()
	defer l.mu.Unlock()
	// Both fail when the caller has gone, which ends the run by its context.
	_ = json.NewEncoder(l.w).Encode(line)
	_ = http.NewResponseController(l.w).Flush()
}

func specOf(r remote.Request) engine.Spec {
	return engine.Spec{
		Job: r.Job, Model: r.Model, Kind: r.Kind, Prompt: r.Prompt, Seed: r.Seed, Options: r.Options,
		Data: inputOf(r.Data), Reference: inputOf(r.Reference),
		Size: model.Size{Width: r.Width, Height: r.Height}, FPS: r.FPS, Duration: seconds(r.Duration),
		Folder: r.Folder, Output: r.Output,
	}
}

func inputOf(input *remote.Input) *engine.Input {
	if input == nil {
		return nil
	}
	return &engine.Input{Path: input.Path, MIME: input.MIME, Info: media.Info{
		Width: input.Width, Height: input.Height, Duration: seconds(input.Duration), Audio: input.Audio,
	}}
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
