// Package comfyui edits media with ComfyUI servers. A catalog model names a workflow in API format
// and the inputs that receive an edit's values.
//
// For a run, the package converts the input to the result's size and frame rate, uploads it (POST /upload/image),
// sends the workflow (POST /prompt), and listens to the server's WebSocket. Then it fetches the result (GET
// /history/{id}, GET /view) and converts it to the size, frame rate, length and sound that the catalog promises.
// The WebSocket only reports progress. The history shows how a run ended, so a lost connection does no harm.
//
// Servers are not trusted: responses are limited, redirects are not followed, and every call ends
// if the server is silent for too long.
package comfyui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/job"
	"cutroom/shared/engine"
	"cutroom/shared/engine/transfer"
	"cutroom/shared/platform/panics"
)

const Name = "comfyui"

// The progress of a run when it is sent, and when its result is ready.
const prepared, generated = 0.05, 0.9

const (
	// A healthy server is polled much more often than this.
	defaultSilence = 2 * time.Minute
	// No node runs this long without progress, not even while it loads a large model.
	defaultStall = 5 * time.Minute
	// A server that has crashed restarts faster than this.
	defaultStarting  = 2 * time.Minute
	defaultPollEvery = 5 * time.Second
	// retryEvery is the time between two checks while no server can accept the run.
	retryEvery = 500 * time.Millisecond
	lookTime   = 5 * time.Second
	forgetTime = 5 * time.Second
)

type Config struct {
	// Servers lists HTTP or HTTPS URLs, such as http://127.0.0.1:8188.
	Servers []string
	// Key is sent to the servers as a bearer token, for example for a proxy in front of them. It may be empty.
	Key string
	// Models without a workflow cannot be used.
	Models []*catalog.Model
	// Folder is the base for relative workflow paths.
	Folder string
	Runner transfer.Runner
	Random io.Reader
	// Silence is how long a server may send nothing before it is considered hung. 0 means two minutes.
	Silence time.Duration
	// Stall is how long a workflow may make no progress before it is considered hung. 0 means five minutes.
	Stall time.Duration
	// Starting is how long a run waits for an available server. 0 means two minutes.
	Starting time.Duration
	// PollEvery is the time between two polls of a run; 0 means five seconds.
	PollEvery time.Duration
}

type Engine struct {
	pool             pool
	workflows        map[string]*workflow
	finisher         transfer.Finisher
	random           io.Reader
	stall, pollEvery time.Duration
}

var (
	_ engine.Engine    = (*Engine)(nil)
	_ engine.Inspected = (*Engine)(nil)
)

// New reads the workflows. It does not check that the servers are running; see [Engine.Inspect].
func New(c Config) (*Engine, error) {
	e := &Engine{
		workflows: map[string]*workflow{}, finisher: transfer.Finisher{Runner: c.Runner, Done: generated},
		random: c.Random, stall: cmp.Or(c.Stall, defaultStall),
		pollEvery: cmp.Or(c.PollEvery, defaultPollEvery), pool: pool{starting: cmp.Or(c.Starting, defaultStarting)},
	}
	seen := map[string]bool{}
	for _, address := range c.Servers {
		base, err := baseURL(address)
		if err != nil {
			return nil, err
		}
		if seen[base] {
			return nil, fmt.Errorf("%q is named twice", address)
		}
		seen[base] = true
		e.pool.servers = append(e.pool.servers, newServer(base, c.Key, cmp.Or(c.Silence, defaultSilence)))
	}
	if len(e.pool.servers) == 0 {
		return nil, errors.New("no server is configured")
	}
	for _, m := range c.Models {
		if m.Workflow == nil {
			continue
		}
		w, err := readWorkflow(c.Folder, m)
		if err != nil {
			return nil, fmt.Errorf("model %q: %w", m.ID, err)
		}
		e.workflows[m.ID] = w
	}
	if len(e.workflows) == 0 {
		return nil, errors.New("no model in the catalog names a workflow")
	}
	return e, nil
}

func baseURL(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" ||
		u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return "", fmt.Errorf("%q is not a URL such as http://127.0.0.1:8188", address)
	}
	return strings.TrimSuffix(address, "/"), nil
}

func (e *Engine) Capabilities() engine.Capabilities {
	return engine.Capabilities{Prefetch: true, ImageToVideo: true}
}

func (e *Engine) Health(ctx context.Context) error { return e.pool.health(ctx) }

// Run edits as specified by [engine.Engine]. If no server can accept the run, Run waits for one, so that a server
// restart does not use up one of the job's attempts.
func (e *Engine) Run(ctx context.Context, spec engine.Spec,
	progress func(engine.Progress)) (report engine.Outcome, err error) {
	defer panics.Error(&err)
	report.Engine = Name
	w, known := e.workflows[spec.Model]
	if !known {
		return report, failed("The engine has no workflow for this model.", false, nil)
	}
	if err := w.takes(spec); err != nil {
		return report, err
	}
	progress(engine.Progress{Stage: "prepare"})
	inputs, err := transfer.Prepare(ctx, e.finisher.Runner, w.atModelRate(spec), w.size(spec), w.frames(spec))
	if err != nil {
		return report, err
	}
	s, err := e.pool.choose(ctx, w)
	if err != nil {
		return report, err
	}
	defer e.pool.leave(s)
	r := &run{engine: e, server: s, workflow: w, spec: spec, inputs: inputs, progress: progress}
	made, err := r.generate(ctx)
	if err != nil {
		return report, err
	}
	if spec.Kind == catalog.Image {
		return report, e.finisher.Image(ctx, spec, made, progress)
	}
	return report, e.finisher.Video(ctx, spec, made, progress)
}

func failed(message string, retryable bool, cause error) *engine.Error {
	return &engine.Error{Code: job.EngineError, Message: message, Retryable: retryable, Err: cause}
}

func garbled(cause error) *engine.Error {
	return failed("The engine returned an invalid response.", true, cause)
}
