// Package cloudwatch writes the inference gateway's and the worker's metrics in the embedded metric format: lines
// of JSON in the log, which CloudWatch converts to metrics. It is for functions and tasks that cannot be scraped.
package cloudwatch

import (
	"encoding/json"
	"io"
	"log/slog"
	"sync"
	"time"

	"cutroom/shared/service/gateway"
)

const namespace = "Cutroom"

// Metrics is a gateway.Observer. Its only dimensions are route, model and upstream, because CloudWatch bills every
// combination as a separate metric. Status and code are only in the log line, for log queries.
type Metrics struct {
	now    func() time.Time
	logger *slog.Logger

	mu  sync.Mutex
	out io.Writer
}

var _ gateway.Observer = (*Metrics)(nil)

func New(out io.Writer, now func() time.Time, logger *slog.Logger) *Metrics {
	return &Metrics{now: now, logger: logger, out: out}
}

type metric struct {
	name, unit string
	value      float64
}

func (m *Metrics) Completed(c gateway.Completion) {
	failed := 0.0
	if c.Status >= 500 || c.Code != "" && c.Status < 400 {
		failed = 1 // the service failed, possibly after a stream's header
	}
	metrics := []metric{
		{"Requests", "Count", 1}, {"Failures", "Count", failed}, {"Duration", "Milliseconds", milliseconds(c.Duration)},
	}
	if c.FirstToken > 0 {
		metrics = append(metrics, metric{"FirstToken", "Milliseconds", milliseconds(c.FirstToken)})
	}
	if c.Waited > 0 {
		metrics = append(metrics, metric{"QueueWait", "Milliseconds", milliseconds(c.Waited)})
	}
	if c.Counts.Requests > 0 {
		metrics = append(metrics,
			metric{"PromptTokens", "Count", float64(c.Counts.PromptTokens)},
			metric{"CachedTokens", "Count", float64(c.Counts.CachedTokens)},
			metric{"CompletionTokens", "Count", float64(c.Counts.CompletionTokens)},
			metric{"ReasoningTokens", "Count", float64(c.Counts.ReasoningTokens)},
			metric{"Estimated", "Count", float64(c.Counts.Estimated)})
	}
	if c.Counts.Cost > 0 {
		metrics = append(metrics, metric{"Cost", "None", float64(c.Counts.Cost) / 1e9})
	}
	model := c.Model
	if model == "" {
		model = "none" // CloudWatch rejects empty dimensions
	}
	m.write([]string{"Route", "Model"}, metrics, map[string]any{
		"Route": c.Route, "Model": model, "Status": c.Status, "Code": c.Code, "Stream": c.Stream,
	})
}

// Attempted ignores calls that did not fail, because Completed counts them.
func (m *Metrics) Attempted(a gateway.Attempt) {
	switch a.Outcome {
	case gateway.Overloaded, gateway.Failed, gateway.TimedOut:
		m.write([]string{"Model", "Upstream"}, []metric{{"UpstreamFailures", "Count", 1}}, map[string]any{
			"Model": a.Model, "Upstream": a.Upstream, "Outcome": a.Outcome,
		})
	}
}

func (m *Metrics) write(dimensions []string, metrics []metric, line map[string]any) {
	var definitions []map[string]string
	for _, each := range metrics {
		definitions = append(definitions, map[string]string{"Name": each.name, "Unit": each.unit})
		line[each.name] = each.value
	}
	line["_aws"] = map[string]any{
		"Timestamp": m.now().UnixMilli(),
		"CloudWatchMetrics": []any{map[string]any{
			"Namespace": namespace, "Dimensions": [][]string{dimensions}, "Metrics": definitions,
		}},
	}
	text, err := json.Marshal(line)
	if err == nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		_, err = m.out.Write(append(text, '\n'))
	}
	if err != nil {
		m.logger.Error("cannot write metrics", "error", err)
	}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
