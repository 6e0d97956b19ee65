// Package engineserver edits media with an engine server, a separate program on the same machine that runs models
// on a GPU. The two share a disk, so they exchange only paths, progress and outcomes. The package converts a run's
// inputs first, and the server's result afterwards, so a server needs to read only PNG and H.264 in MP4.
//
// A run is one POST to /v1/runs with a [Request] as JSON. The response consists of lines of JSON:
// any number of [Line]s with progress, then one with the result or the error. Closing the
// connection cancels the run. GET /healthz returns 200 while the server can accept runs. If the run
// is traced, the request carries the traceparent (W3C Trace Context) of the run's span.
package engineserver

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/job"
	"cutroom/shared/domain/media"
	"cutroom/shared/domain/media/sniff"
	"cutroom/shared/engine"
	"cutroom/shared/engine/transfer"
	"cutroom/shared/platform/boundedjson"
	"cutroom/shared/platform/trace"
)

const (
	// A healthy server sends a line every ten seconds. It also reports a run that hangs. If it sends nothing, the
	// server itself hangs.
	defaultSilence = 2 * time.Minute
	// A server that has crashed restarts faster than this, because it loads weights only when it needs them.
	defaultStarting = 2 * time.Minute
	retryEvery      = 500 * time.Millisecond
	healthTime      = 5 * time.Second
	// generated is the progress of a run when the server's result is ready.
	generated = 0.9
)

type Config struct {
	URL string
	// Silence is how long a server may send nothing before it is considered hung. 0 means two minutes.
	Silence time.Duration
	// Starting is how long a run waits for an unreachable server. 0 means two minutes.
	Starting time.Duration
	// Runner converts files. If it is nil, inputs and results are passed on unchanged.
	Runner transfer.Runner
	// nil means a [net.Dialer].
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Engine is safe for concurrent use. The server limits the number of concurrent runs.
type Engine struct {
	client            *http.Client
	base              string
	silence, starting time.Duration
	finisher          transfer.Finisher
}

var _ engine.Engine = (*Engine)(nil)

// New does not check whether the server is running.
func New(c Config) (*Engine, error) {
	u, err := url.Parse(c.URL)
	if err != nil || u.Scheme != "http" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return nil, fmt.Errorf("%q is not an http URL such as http://127.0.0.1:8090", c.URL)
	}
	return &Engine{
		base:    strings.TrimSuffix(c.URL, "/"),
		silence: cmp.Or(c.Silence, defaultSilence), starting: cmp.Or(c.Starting, defaultStarting),
		finisher: transfer.Finisher{Runner: c.Runner, Done: generated},
		client: &http.Client{
			// Use no proxy, because the server must be on this machine to share the disk.
			Transport: &http.Transport{
				Proxy: nil, DialContext: c.Dial, MaxIdleConnsPerHost: 4, IdleConnTimeout: time.Minute,
				MaxResponseHeaderBytes: 64 << 10, DisableCompression: true,
			},
			CheckRedirect: func(*http.Request, []*http.Request) error {
				return http.ErrUseLastResponse
			},
		},
	}, nil
}

func (e *Engine) Capabilities() engine.Capabilities { return engine.Capabilities{Prefetch: true} }

func (e *Engine) Health(ctx context.Context) error {
	_, err := e.loaded(ctx)
	return err
}

// loaded returns the models that a healthy server has in memory, as far as the server reports them.
func (e *Engine) loaded(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, healthTime)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, e.base+"/healthz", nil)
	if err != nil {
		return nil, fmt.Errorf("engineserver: %w", err)
	}
	response, err := e.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("engineserver: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("engineserver: the health check returned status %d", response.StatusCode)
	}
	var health struct {
		Loaded []string `json:"loaded"`
	}
	if boundedjson.Read(response.Body, maxLine, maxValues, &health) != nil {
		return nil, nil // the status shows that the server is healthy
	}
	return health.Loaded, nil
}

// Run edits as specified by [engine.Engine], and reports the server's stages. When the context ends, it closes the
// connection and returns, and the server stops at its next step.
//
// Run waits for an unreachable server, so that a server restart does not use up one of the job's attempts.
func (e *Engine) Run(
	ctx context.Context, spec engine.Spec, progress func(engine.Progress),
) (report engine.Outcome, err error) {
	if e.finisher.Runner == nil {
		result, err := e.generate(ctx, spec, progress)
		return result.outcome(), err
	}
	progress(engine.Progress{Stage: "prepare"})
	began, asked := time.Now(), spec
	inputs, err := transfer.Prepare(ctx, e.finisher.Runner, spec, spec.Size, transfer.FrameCount(spec))
	if err != nil {
		return report, err
	}
	if spec.Data != nil {
		asked.Data = &engine.Input{Path: inputs.Data.Path, MIME: inputs.Data.MIME}
	}
	if spec.Reference != nil {
		asked.Reference = &engine.Input{Path: inputs.Reference.Path, MIME: inputs.Reference.MIME}
	}
	if spec.Remaining > 0 {
		asked.Remaining = max(spec.Remaining-time.Since(began), time.Second)
	}
	asked.Output = filepath.Join(spec.Folder, "generated"+filepath.Ext(spec.Output))
	result, err := e.generate(ctx, asked, func(p engine.Progress) {
		p.Fraction *= generated
		progress(p)
	})
	if err != nil {
		return report, err
	}
	made := transfer.Made{Path: asked.Output, MIME: resultType(spec), FPS: result.FPS}
	if spec.Kind == catalog.Image {
		return result.outcome(), e.finisher.Image(ctx, spec, made, progress)
	}
	return result.outcome(), e.finisher.Video(ctx, spec, made, progress)
}

// generate performs a run on the server and checks its output file.
func (e *Engine) generate(
	ctx context.Context, spec engine.Spec, progress func(engine.Progress),
) (report Result, err error) {
	body, err := json.Marshal(requestOf(spec))
	if err != nil {
		return report, fmt.Errorf("engineserver: %w", err)
	}
	// The watchdog starts with this call. It cancels the run if its server is silent for too long.
	within, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	watch := time.AfterFunc(e.silence, func() { stop(errSilent) })
	defer watch.Stop()

	response, err := e.reach(within, body, watch)
	if err != nil {
		return report, e.explain(ctx, within, err)
	}
	defer response.Body.Close()
	result, err := follow(response, func() { watch.Reset(e.silence) }, progress)
	if err != nil {
		return report, e.explain(ctx, within, err)
	}
	if err := check(spec, result); err != nil {
		return report, err
	}
	for stage, took := range result.stages() {
		progress(engine.Progress{Fraction: 1, Stage: stage, Took: took})
	}
	return result, nil
}

// reach sends the run. While the server does not listen, reach stops the watchdog and tries again.
func (e *Engine) reach(ctx context.Context, body []byte, watch *time.Timer) (*http.Response, error) {
	patience := time.NewTimer(e.starting)
	defer patience.Stop()
	for {
		watch.Reset(e.silence)
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.base+"/v1/runs", bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		request.Header.Set("Content-Type", "application/json")
		if parent := trace.Parent(ctx); parent != "" {
			request.Header.Set(trace.Header, parent)
		}
		response, err := e.client.Do(request)
		var network *net.OpError
		if err == nil || !errors.As(err, &network) || network.Op != "dial" {
			return response, err
		}
		watch.Stop()
		select {
		case <-time.After(retryEvery):
		case <-patience.C:
			return nil, &engine.Error{Code: job.EngineError, Message: "The engine cannot be reached.", Retryable: true, Err: err}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

var errSilent = errors.New("the engine server is silent")

func (e *Engine) explain(ctx, within context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var known *engine.Error
	if errors.As(err, &known) {
		return known
	}
	if errors.Is(context.Cause(within), errSilent) {
		return &engine.Error{Code: job.EngineError, Message: "The engine stopped responding.", Retryable: true, Err: errSilent}
	}
	return &engine.Error{
		Code: job.EngineError, Message: "The engine stopped during the edit.", Retryable: true, Err: err,
	}
}

// check checks the server's output file.
func check(spec engine.Spec, result Result) error {
	broken := func(cause error) error {
		return &engine.Error{Code: job.EngineError, Message: job.NoResultMessage, Retryable: true, Err: cause}
	}
	file, err := engine.OpenRegular(spec.Output)
	if err != nil {
		return broken(err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return broken(err)
	}
	if info.Size() == 0 || result.Bytes != info.Size() {
		return broken(fmt.Errorf("%s has %d bytes, but the server reported %d", spec.Output, info.Size(), result.Bytes))
	}
	head := make([]byte, media.SniffLen)
	n, err := io.ReadFull(file, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return broken(err)
	}
	if kind, known := sniff.Media(head[:n]); !known || kind.MIME != resultType(spec) {
		return broken(fmt.Errorf("%s has type %q, want %s", spec.Output, kind.MIME, resultType(spec)))
	}
	return nil
}
