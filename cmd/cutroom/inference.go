package main

import (
	"context"
	"crypto/rand"
	"log/slog"
	mathrand "math/rand/v2"
	"net"
	"os"
	"time"

	"go.opentelemetry.io/otel/trace"

	"cutroom/shared/adapter/prometheus"
	"cutroom/shared/adapter/sqlite"
	"cutroom/shared/app/setting"
	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/ratelimit"
	"cutroom/shared/domain/usage"
	"cutroom/shared/platform/httpserver"
	"cutroom/shared/service/gateway"
	"cutroom/shared/service/gateway/demomodel"
	"cutroom/shared/service/gateway/tokenizer"
	"cutroom/shared/service/gateway/upstream"
)

// catalogEvery is how often the catalog's file is checked for changes.
const catalogEvery = 2 * time.Second

// heapBallast is about the least garbage, in bytes, that accumulates before the
// collector runs. It runs whenever the heap has doubled, and a gateway's heap is so
// small that it doubles every few hundred calls. A higher GOGC would also let a
// large heap grow that many times over.
const heapBallast = 16 << 20

// longestBody is how long the body of a completion may take to arrive; a large one has longer (see
// httpserver.Config). It stays in memory until the request is answered.
const longestBody = 2 * time.Minute

// minInferenceMemory is the least CUTROOM_INFERENCE_MEMORY: with less, an account
// could not send the largest request.
const minInferenceMemory = 4 * gateway.MaxBody

type inferenceFlags struct {
	InferenceAddr      string       `env:"CUTROOM_INFERENCE_ADDR" default:"127.0.0.1:8081" help:"Address of the inference gateway; :8081 opens it to other machines (${env})."`
	InferenceMemory    setting.Size `env:"CUTROOM_INFERENCE_MEMORY" default:"256MiB" help:"Memory that the bodies of all requests under way at the inference gateway may hold, half of it for one account at most; 128MiB at least (${env})."`
	BatchCalls         int          `env:"CUTROOM_BATCH_CALLS" default:"16" help:"Calls of batches that are made at once (${env})."`
	PublicInferenceURL string       `env:"CUTROOM_PUBLIC_INFERENCE_URL" help:"URL by which browsers reach the gateway, such as https://llm.example.com, for the console; without one it is the gateway's port on the console's host, by http (${env})."`
	MetricsKey         string       `env:"CUTROOM_METRICS_KEY" help:"Key that reads /metrics at the inference address, as a Bearer token; made and kept in the data folder if absent (${env})."`
}

// inference is the gateway's part of the server.
type inference struct {
	listener net.Listener
	http     *httpserver.Server
	gateway  *gateway.Gateway
	writer   *usage.Writer
	catalog  *catalog.Live
	metrics  *prometheus.Metrics
	// file is the file that the catalog follows; its path is "" for the built-in catalog.
	file   catalog.File
	logger *slog.Logger
	// ballast enlarges the heap by pages that are never touched, so that they take
	// address space and no memory.
	ballast []byte
}

// inferenceParts are shared by the gateway and the rest of the server.
type inferenceParts struct {
	now func() time.Time
	// ready reports why requests cannot be served.
	ready         func(context.Context) error
	records       *sqlite.DB
	catalog       *catalog.Live
	file          catalog.File
	authenticator *credential.Authenticator
	limiter       *ratelimit.Limiter
	budgets       *budget.Manager
	callers       callers
	failures      *ratelimit.Failures
	metricsKey    string
	tracer        trace.Tracer
	batches       *gateway.Batches
	logger        *slog.Logger
}

// slow delays a caller that tried a wrong key for the metrics.
func (p inferenceParts) slow(ctx context.Context) {
	_ = p.failures.Failed(ctx, credential.Caller(ctx)) // the answer is the same at once
}

// newInference makes the gateway and its listener. On error it leaves nothing open.
func newInference(c *devCommand, parts inferenceParts) (*inference, error) {
	listener, err := listen("CUTROOM_INFERENCE_ADDR", c.InferenceAddr)
	if err != nil {
		return nil, err
	}
	tokens := tokenizer.New()
	metrics := prometheus.New()
	i := &inference{
		listener: listener, catalog: parts.catalog, metrics: metrics, file: parts.file, logger: parts.logger,
		ballast: make([]byte, heapBallast),
		writer:  usage.NewWriter(usage.WriterConfig{Store: parts.records.Usage(), NewID: rand.Text, Logger: parts.logger}),
	}
	i.gateway = gateway.New(gateway.Config{
		Catalog: parts.catalog.Catalog, Authenticator: parts.authenticator, Batches: parts.batches,
		Spending: gateway.Spending{
			Limiter: parts.limiter, Meter: i.writer, Budgets: parts.budgets, Usage: i.writer, Tokenizer: tokens,
		},
		Upstreams: gateway.Upstreams{
			Secrets:  upstream.LocalSecrets{},
			Embedded: demomodel.New(demomodel.Config{Tokenizer: tokens, Now: parts.now, NewID: rand.Text}),
			Random:   mathrand.Float64,
		},
		BodyMemory: int64(c.InferenceMemory),
		Tracer:     parts.tracer, Observer: metrics, Metrics: metrics.Handler(parts.metricsKey, parts.slow),
		Origins:  c.Origins,
		Trailers: true, Ready: parts.ready,
		Now: time.Now, Date: parts.now, Logger: parts.logger,
	}, gateway.Models, gateway.FilesAndBatches)
	metrics.Watch(i.gateway.Health, i.gateway.Queues)
	i.http = httpserver.New(httpserver.Config{
		Longest: longestBody,
		Logger:  parts.logger, QuietReads: c.readAlong, Tracer: parts.tracer, Observer: metrics.Surface("inference"),
		OnPanic: gateway.PanicHandler(c.Origins), Handler: parts.callers.named(i.gateway),
	})
	return i, nil
}

func (i *inference) url() string { return "http://" + reachable(i.listener.Addr()) }

// chatModel returns the slug of the first model that serves chat completions, if there is one.
func (i *inference) chatModel() (slug string, ok bool) {
	for _, row := range i.catalog.Catalog().InferenceModels() {
		if row.Serves(catalog.Chat) {
			return row.ID, true
		}
	}
	return "", false
}

// followCatalog applies changes of the catalog's file until the context ends.
func (i *inference) followCatalog(ctx context.Context) {
	if i.file.Path != "" {
		i.catalog.Follow(ctx, i.file, catalogEvery, nil, i.logger)
	}
}

// close closes newInference's resources.
func (i *inference) close() {
	i.listener.Close()
	i.gateway.Close()
}

func (f catalogFlags) liveCatalog() (*catalog.Live, catalog.File, error) {
	file := catalog.File{Path: f.Catalog, Family: f.Family}
	if f.Catalog != "" {
		// It is read first, so that a change in between is noticed later. An error is reported below.
		file.Source, _ = os.ReadFile(f.Catalog)
	}
	known, err := f.catalog()
	if err != nil {
		return nil, file, err
	}
	return catalog.NewLive(known), file, nil
}
