// Package openaimedia edits media with servers that offer OpenAI's video and image API, such as
// vLLM-Omni and SGLang. It uses POST /v1/videos, whose jobs it polls, and POST /v1/images/edits.
//
// Such a server runs one model, with restrictions: it receives at most one clip, and a second image only for
// image edits. Its result is converted to the size, frame rate, length and sound that the catalog promises.
package openaimedia

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/job"
	"cutroom/shared/engine"
	"cutroom/shared/engine/transfer"
)

const (
	// callTime limits a call that does not wait for a model.
	callTime         = time.Minute
	defaultPollEvery = time.Second
	maxPollsLost     = 10
	deleteTime       = 5 * time.Second
)

type Config struct {
	// The base URLs may end with "/v1". They may be the same.
	Videos, Images string
	Key            string
	Runner         transfer.Runner
	// PollEvery is the time between polls of a video. 0 means one second.
	PollEvery time.Duration
}

type Engine struct {
	client              *http.Client
	videos, images, key string
	finisher            transfer.Finisher
	pollEvery           time.Duration
}

var _ engine.Engine = (*Engine)(nil)

// newClient returns a client for untrusted servers. It follows no redirects, which would send the key to another
// server. It reads at most 64 KiB of headers, and does not decompress.
func newClient() *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, TLSHandshakeTimeout: 10 * time.Second, MaxIdleConnsPerHost: 4,
			IdleConnTimeout: 30 * time.Second, MaxResponseHeaderBytes: 64 << 10, DisableCompression: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// New does not check whether the servers are running.
func New(c Config) (*Engine, error) {
	e := &Engine{client: newClient(), key: c.Key, pollEvery: c.PollEvery}
	e.finisher = transfer.Finisher{Runner: c.Runner, Done: generated}
	if e.pollEvery == 0 {
		e.pollEvery = defaultPollEvery
	}
	var err error
	if e.videos, err = callsBegin(c.Videos); err != nil {
		return nil, err
	}
	if e.images, err = callsBegin(c.Images); err != nil {
		return nil, err
	}
	return e, nil
}

func callsBegin(base string) (string, error) {
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return "", fmt.Errorf("%q is not an http or https URL", base)
	}
	return strings.TrimSuffix(strings.TrimSuffix(base, "/"), "/v1") + "/v1", nil
}

func (e *Engine) Capabilities() engine.Capabilities {
	return engine.Capabilities{Prefetch: true, ImageToVideo: true}
}

const Name = "openai"

// Run edits as [engine.Engine] specifies. It reports the stages "generate" and "finish". When the context ends, Run
// deletes the video on the server.
func (e *Engine) Run(ctx context.Context, spec engine.Spec, progress func(engine.Progress)) (engine.Outcome, error) {
	report := engine.Outcome{Engine: Name}
	if spec.Kind == catalog.Image {
		return report, e.image(ctx, spec, progress)
	}
	if spec.Reference != nil {
		return report, engine.InvalidInput(nil, "The engine does not support a reference image or a last image for a video.")
	}
	return report, e.video(ctx, spec, progress)
}

// call returns the response, which the caller must close. A status other than 200 is an error.
// Errors: the context's; [*engine.Error].
func (e *Engine) call(ctx context.Context, method, target string, body io.Reader,
	contentType string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, target, body)
	if err != nil {
		return nil, fmt.Errorf("openaimedia: %w", err)
	}
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	if e.key != "" {
		request.Header.Set("Authorization", "Bearer "+e.key)
	}
	response, err := e.client.Do(request)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, failed("The engine cannot be reached.", true, err)
	}
	if response.StatusCode == http.StatusOK {
		return response, nil
	}
	response.Body.Close()
	// A rejection is permanent unless the server failed or was busy.
	busy := response.StatusCode >= 500 || response.StatusCode == http.StatusTooManyRequests
	return nil, failed("The engine rejected the edit.", busy, &statusError{response.StatusCode})
}

type statusError struct{ status int }

func (e *statusError) Error() string {
	return fmt.Sprintf("openaimedia: the server returned status %d", e.status)
}

func failed(message string, retryable bool, cause error) *engine.Error {
	return &engine.Error{Code: job.EngineError, Message: message, Retryable: retryable, Err: cause}
}

// ours returns the context's error if the context has ended, otherwise err.
func ours(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var known *engine.Error
	if errors.As(err, &known) {
		return err
	}
	return failed("The engine stopped during the edit.", true, err)
}
