package cost

import (
	"context"
	"encoding/json"
	"strings"

	"cutroom/shared/app/awscost"
)

// completionScenarios: a chat of about 2 KB, answered by the built-in model, whole and as
// a stream. The time of a model server is counted separately: while it answers the
// function waits.
func (w *world) completionScenarios(ctx context.Context) ([]awscost.Scenario, error) {
	whole, err := w.completion(ctx, "completion", "chat completions", false)
	if err != nil {
		return nil, err
	}
	stream, err := w.completion(ctx, "stream", "chat completions, streamed", true)
	return []awscost.Scenario{whole, stream}, err
}

func (w *world) completion(ctx context.Context, name, title string, stream bool) (awscost.Scenario, error) {
	t := w.newTally(name)
	inference, err := t.function(ctx, "inference", true)
	if err != nil {
		return awscost.Scenario{}, err
	}
	if err := t.repeat(fastRuns, func() error {
		r, err := post("/v1/chat/completions", map[string]string{"Authorization": "Bearer " + w.key()}, map[string]any{
			"model": "cutroom-echo", "stream": stream, "max_tokens": 100,
			"messages": []map[string]string{{"role": "user", "content": strings.Repeat("How are you today? ", 100)}},
		})
		if err != nil {
			return err
		}
		_, err = inference.request(ctx, r)
		return err
	}); err != nil {
		return awscost.Scenario{}, err
	}
	s, err := t.scenario(title)
	s.Metrics = metricsOf(inference.function.Log())
	return s, err
}

// metricsOf counts the metrics that CloudWatch extracts from a log: one for each name and
// each combination of its dimensions' values (CloudWatch User Guide, "Embedded metric
// format specification").
func metricsOf(log string) int {
	metrics := map[string]bool{}
	for line := range strings.Lines(log) {
		var embedded struct {
			AWS struct {
				CloudWatchMetrics []struct {
					Namespace  string
					Dimensions [][]string
					Metrics    []struct{ Name string }
				}
			} `json:"_aws"`
		}
		var values map[string]any
		if json.Unmarshal([]byte(line), &embedded) != nil || json.Unmarshal([]byte(line), &values) != nil {
			continue // not a line of metrics
		}
		for _, directive := range embedded.AWS.CloudWatchMetrics {
			for _, set := range directive.Dimensions {
				series := directive.Namespace
				for _, dimension := range set {
					value, _ := values[dimension].(string)
					series += "\x00" + dimension + "\x00" + value
				}
				for _, metric := range directive.Metrics {
					metrics[series+"\x00"+metric.Name] = true
				}
			}
		}
	}
	return len(metrics)
}
