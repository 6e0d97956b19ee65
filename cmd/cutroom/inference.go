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

const catalogEvery = 2 * time.Second

// heapBallast is approximately the minimum amount of garbage, in bytes, that accumulates before a
// garbage collection. A collection starts when the heap has doubled, and a gateway's heap is so
// small that it doubles every few hundred requests. A higher GOGC would bloat a large heap.
const heapBallast = 16 << 20

// longestBody is how long the body of a completion request may take to arrive. Large bodies get
// more time (see httpserver.Config). The body stays in memory until the response has been sent.
const longestBody = 2 * time.Minute

type inferenceFlags struct {
	InferenceAddr      string `env:"CUTROOM_INFERENCE_ADDR" default:"127.0.0.1:8081" help:"Address of the inference gateway; :8081 opens it to other machines (${env})."`
	PublicInferenceURL string `env:"CUTROOM_PUBLIC_INFERENCE_URL" help:"URL at which the console reaches the gateway, such as https://llm.example.com; by default the console's host with the gateway's port, over http (${env})."`
	NetHTTP            bool   `env:"CUTROOM_NET_HTTP" help:"Serve all requests of the gateway with Go's net/http, which takes more processor time (${env})."`
	MetricsKey         string `env:"CUTROOM_METRICS_KEY" help:"Bearer token that reads /metrics at the inference address; generated and kept in the data folder if not set (${env})."`
}

type inference struct {
	listener net.Listener
	http     *httpserver.Server
	gateway  *gateway.Gateway
	writer   *usage.Writer
	catalog  *catalog.Live
	metrics  *prometheus.Metrics
	// file is the watched catalog file. Its path is "" for the built-in catalog.
	file   catalog.File
	logger *slog.Logger
	// ballast enlarges the heap by untouched pages, which take address space but no memory.
	ballast []byte
}

type inferenceParts struct {
	now func() time.Time
	// ready returns an error while requests cannot be served.
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

func (p inferenceParts) slow(ctx context.Context) {
	_ = p.failures.Failed(ctx, credential.Caller(ctx)) // the error does not change the response
}

// newInference makes the gateway and its listener. On error it closes everything it opened.
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
		Responses: parts.records.Responses(),
		Spending: gateway.Spending{
			Limiter: parts.limiter, Meter: i.writer, Budgets: parts.budgets, Usage: i.writer, Tokenizer: tokens,
		},
		Upstreams: gateway.Upstreams{
			Secrets:  upstream.LocalSecrets{},
			Embedded: demomodel.New(demomodel.Config{Tokenizer: tokens, Now: parts.now, NewID: rand.Text}),
			Random:   mathrand.Float64,
		},
		Tracer: parts.tracer, Observer: metrics, Metrics: metrics.Handler(parts.metricsKey, parts.slow),
		Origins:  c.Origins,
		Trailers: true, Ready: parts.ready,
		Now: time.Now, Date: parts.now, Logger: parts.logger,
	}, gateway.Models, gateway.FilesAndBatches)
	metrics.Watch(i.gateway.Health, i.gateway.Queues)
	i.http = httpserver.New(httpserver.Config{
		Longest: longestBody, Loop: !c.NetHTTP,
		Logger: parts.logger, QuietReads: c.readAlong, Tracer: parts.tracer, Observer: metrics.Surface("inference"),
		OnPanic: gateway.PanicHandler(c.Origins), Value: parts.callers.value, Handler: i.gateway,
	})
	return i, nil
}

func (i *inference) url() string { return "http://" + reachable(i.listener.Addr()) }

func (i *inference) chatModel() (slug string, ok bool) {
	for _, row := range i.catalog.Catalog().InferenceModels() {
		if row.Serves(catalog.Chat) {
			return row.ID, true
		}
	}
	return "", false
}

// followCatalog reloads the catalog file whenever it changes, until the context ends.
func (i *inference) followCatalog(ctx context.Context) {
	if i.file.Path != "" {
		i.catalog.Follow(ctx, i.file, catalogEvery, i.logger)
	}
}

func (i *inference) close() {
	i.listener.Close()
	i.gateway.Close()
}

func (f catalogFlags) liveCatalog() (*catalog.Live, catalog.File, error) {
	file := catalog.File{Path: f.Catalog, Family: f.Family}
	if f.Catalog != "" {
		// Read the file before parsing it, so that a later change is noticed. f.catalog reports errors.
		file.Source, _ = os.ReadFile(f.Catalog)
	}
	known, err := f.catalog()
	if err != nil {
		return nil, file, err
	}
	return catalog.NewLive(known), file, nil
}
