// Package prometheus exposes the metrics of the one-machine service (docs/logs.md).
package prometheus

import (
	"context"
	"net/http"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"cutroom/shared/service/gateway"
	"cutroom/shared/service/gateway/upstream"
)

// Metrics takes label values only from the catalog and the routes, so that callers cannot add series.
type Metrics struct {
	registry   *prometheus.Registry
	requests   *prometheus.CounterVec
	duration   *prometheus.HistogramVec
	firstToken *prometheus.HistogramVec
	waited     *prometheus.HistogramVec
	tokens     *prometheus.CounterVec
	cost       *prometheus.CounterVec
	estimated  *prometheus.CounterVec
	attempts   *prometheus.CounterVec
	warnings   *prometheus.CounterVec
	batchCalls *prometheus.CounterVec
	batchCost  *prometheus.CounterVec
	surfaces   surfaces
	completed  *series[completed, completedSeries]
	attempted  *series[gateway.Attempt, prometheus.Counter]
}

type completed struct {
	route, model, code string
	status             int
	stream             bool
}

type completedSeries struct {
	requests, prompt, completion prometheus.Counter
	duration                     prometheus.Observer
}

var _ gateway.Observer = (*Metrics)(nil)

var (
	durationBuckets   = []float64{.005, .025, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600}
	firstTokenBuckets = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}
)

func New() *Metrics {
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m := &Metrics{
		registry: registry, surfaces: newSurfaces(registry),
		requests: counter(registry, "cutroom_gateway_requests_total", "Calls to the completions routes, by status.",
			"route", "model", "status", "code"),
		duration: histogram(registry, "cutroom_gateway_request_duration_seconds", durationBuckets,
			"Time from a call's arrival to the end of its response.", "route", "model", "stream"),
		firstToken: histogram(registry, "cutroom_gateway_first_token_seconds", firstTokenBuckets,
			"Time from a call's arrival to the first chunk of its stream.", "route", "model"),
		waited: histogram(registry, "cutroom_gateway_queue_wait_seconds", firstTokenBuckets,
			"Time that calls waited for an upstream, if they had to wait.", "model"),
		tokens: counter(registry, "cutroom_gateway_tokens_total",
			"Metered tokens. Cached tokens are also prompt tokens, and reasoning tokens are also completion tokens.",
			"model", "kind"),
		cost: counter(registry, "cutroom_gateway_cost_total", "Cost of calls at the prices of the catalog, in its currency.",
			"model"),
		estimated: counter(registry, "cutroom_gateway_estimated_total",
			"Calls whose tokens were counted here, because the upstream did not report them.", "model"),
		attempts: counter(registry, "cutroom_gateway_upstream_attempts_total", "Calls to upstreams, by outcome.",
			"model", "upstream", "outcome"),
		warnings: counter(registry, "cutroom_budget_warnings_total",
			"Budget warnings, by the percentage reached, once per day or month.", "percent"),
		batchCalls: counter(registry, "cutroom_gateway_batch_requests_total", "Metered batch requests.", "model"),
		batchCost: counter(registry, "cutroom_gateway_batch_cost_total",
			"Cost of batch requests, included in cutroom_gateway_cost_total.", "model"),
	}
	m.completed = newSeries(func(c completed) completedSeries {
		s := completedSeries{requests: m.requests.WithLabelValues(c.route, c.model, strconv.Itoa(c.status), c.code)}
		if c.model != "" {
			s.duration = m.duration.WithLabelValues(c.route, c.model, strconv.FormatBool(c.stream))
			s.prompt, s.completion = m.tokens.WithLabelValues(c.model, "prompt"), m.tokens.WithLabelValues(c.model, "completion")
		}
		return s
	})
	m.attempted = newSeries(func(a gateway.Attempt) prometheus.Counter {
		return m.attempts.WithLabelValues(a.Model, a.Upstream, string(a.Outcome))
	})
	return m
}

func counter(registry *prometheus.Registry, name, help string, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	registry.MustRegister(c)
	return c
}

func histogram(
	registry *prometheus.Registry, name string, buckets []float64, help string, labels ...string,
) *prometheus.HistogramVec {
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	registry.MustRegister(h)
	return h
}

func (m *Metrics) Completed(c gateway.Completion) {
	of := m.completed.of(completed{c.Route, c.Model, c.Code, c.Status, c.Stream})
	of.requests.Inc()
	if c.Model == "" {
		return // rejected before any work
	}
	of.duration.Observe(c.Duration.Seconds())
	if c.FirstToken > 0 {
		m.firstToken.WithLabelValues(c.Route, c.Model).Observe(c.FirstToken.Seconds())
	}
	if c.Waited > 0 {
		m.waited.WithLabelValues(c.Model).Observe(c.Waited.Seconds())
	}
	of.prompt.Add(float64(c.Counts.PromptTokens))
	m.addTokens(c.Model, "cached", c.Counts.CachedTokens)
	of.completion.Add(float64(c.Counts.CompletionTokens))
	m.addTokens(c.Model, "reasoning", c.Counts.ReasoningTokens)
	if c.Counts.Cost > 0 {
		m.cost.WithLabelValues(c.Model).Add(float64(c.Counts.Cost) / 1e9)
	}
	if c.Counts.BatchRequests > 0 {
		m.batchCalls.WithLabelValues(c.Model).Add(float64(c.Counts.BatchRequests))
		m.batchCost.WithLabelValues(c.Model).Add(float64(c.Counts.BatchCost) / 1e9)
	}
	if c.Counts.Estimated > 0 {
		m.estimated.WithLabelValues(c.Model).Add(float64(c.Counts.Estimated))
	}
}

func (m *Metrics) addTokens(model, kind string, n int64) {
	if n > 0 {
		m.tokens.WithLabelValues(model, kind).Add(float64(n))
	}
}

func (m *Metrics) Attempted(a gateway.Attempt) {
	m.attempted.of(a).Inc()
}

func (m *Metrics) BudgetWarned(percent int) { m.warnings.WithLabelValues(strconv.Itoa(percent)).Inc() }

func (m *Metrics) Watch(health func() []upstream.Health, queues func() []upstream.QueueState) {
	m.registry.MustRegister(&upstreams{health, queues})
}

// Handler serves GET /metrics to callers that send the key as a Bearer token. An empty key matches no caller. Handler
// calls `failed`, which may be nil, for each wrong key.
func (m *Metrics) Handler(key string, failed func(context.Context)) http.Handler {
	return readable(key, failed, promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4}))
}

type upstreams struct {
	health func() []upstream.Health
	queues func() []upstream.QueueState
}

var (
	upstreamLabels = []string{"model", "upstream"}
	upstreamUp     = prometheus.NewDesc("cutroom_gateway_upstream_up",
		"1 for an upstream that gets calls, 0 for an upstream that has recently failed too often.", upstreamLabels, nil)
	upstreamInFlight = prometheus.NewDesc("cutroom_gateway_upstream_in_flight",
		"Calls in progress at an upstream.", upstreamLabels, nil)
	upstreamLimit = prometheus.NewDesc("cutroom_gateway_upstream_in_flight_limit",
		"Limit of concurrent calls of an upstream. 0 means no limit.", upstreamLabels, nil)
	upstreamReplicas = prometheus.NewDesc("cutroom_gateway_upstream_replicas",
		"Servers behind the name of an upstream.", upstreamLabels, nil)
	queueWaiting = prometheus.NewDesc("cutroom_gateway_queue_waiting",
		"Calls waiting for an upstream.", []string{"model"}, nil)
	queuePlaces = prometheus.NewDesc("cutroom_gateway_queue_places",
		"Limit of calls waiting for an upstream.", []string{"model"}, nil)
)

func (u *upstreams) Describe(out chan<- *prometheus.Desc) {
	describe(out, upstreamUp, upstreamInFlight, upstreamLimit, upstreamReplicas, queueWaiting, queuePlaces)
}

func describe(out chan<- *prometheus.Desc, all ...*prometheus.Desc) {
	for _, desc := range all {
		out <- desc
	}
}

func (u *upstreams) Collect(out chan<- prometheus.Metric) {
	for _, h := range u.health() {
		up := 1.0
		if h.Open {
			up = 0
		}
		gauge(out, upstreamUp, up, h.Model, h.Upstream)
		gauge(out, upstreamInFlight, float64(h.InFlight), h.Model, h.Upstream)
		gauge(out, upstreamLimit, float64(h.Limit), h.Model, h.Upstream)
		if h.Found {
			gauge(out, upstreamReplicas, float64(h.Replicas), h.Model, h.Upstream)
		}
	}
	for _, q := range u.queues() {
		gauge(out, queueWaiting, float64(q.Waiting), q.Model)
		gauge(out, queuePlaces, float64(q.Places), q.Model)
	}
}

func gauge(out chan<- prometheus.Metric, desc *prometheus.Desc, value float64, labels ...string) {
	out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
}
