// Package tracetest is a trace collector for tests. It receives OTLP over HTTP.
package tracetest

import (
	"compress/gzip"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	"google.golang.org/protobuf/proto"
)

// Ids are in hex.
type Span struct {
	Service, Name           string
	TraceID, SpanID, Parent string
	Start, End              time.Time
	Failed                  bool
	// Lists in Attributes are joined by commas. Events contains event names.
	Attributes map[string]string
	Events     []string
}

type Collector struct {
	URL string

	mu    sync.Mutex
	spans []Span
	// raw contains everything received, so that tests can check for forbidden content.
	raw  []byte
	grew chan struct{}
}

func Start(t *testing.T) *Collector {
	t.Helper()
	c := &Collector{grew: make(chan struct{})}
	server := httptest.NewServer(http.HandlerFunc(c.receive))
	t.Cleanup(server.Close)
	c.URL = server.URL
	return c
}

// Settings returns environment variables that make a program send every span to the collector.
func (c *Collector) Settings() []string {
	return []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + c.URL, "OTEL_TRACES_SAMPLER=parentbased_always_on"}
}

func (c *Collector) receive(w http.ResponseWriter, r *http.Request) {
	var body io.Reader = r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		unpacked, err := gzip.NewReader(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		body = unpacked
	}
	text, err := io.ReadAll(body)
	var request collector.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(text, &request)
	}
	if err != nil || r.URL.Path != "/v1/traces" {
		http.Error(w, fmt.Sprint(err), http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.raw = append(c.raw, text...)
	for _, resource := range request.ResourceSpans {
		service := attributes(resource.Resource.GetAttributes())["service.name"]
		for _, scope := range resource.ScopeSpans {
			for _, s := range scope.Spans {
				span := Span{
					Service: service, Name: s.Name, TraceID: hex.EncodeToString(s.TraceId), SpanID: hex.EncodeToString(s.SpanId),
					Parent: hex.EncodeToString(s.ParentSpanId), Attributes: attributes(s.Attributes), Failed: s.Status.GetCode() == 2,
					Start: time.Unix(0, int64(s.StartTimeUnixNano)), End: time.Unix(0, int64(s.EndTimeUnixNano)),
				}
				for _, event := range s.Events {
					span.Events = append(span.Events, event.Name)
				}
				c.spans = append(c.spans, span)
			}
		}
	}
	close(c.grew)
	c.grew = make(chan struct{})
	w.Header().Set("Content-Type", "application/x-protobuf")
}

func attributes(values []*common.KeyValue) map[string]string {
	all := map[string]string{}
	for _, value := range values {
		switch v := value.Value.GetValue().(type) {
		case *common.AnyValue_StringValue:
			all[value.Key] = v.StringValue
		case *common.AnyValue_IntValue:
			all[value.Key] = fmt.Sprint(v.IntValue)
		case *common.AnyValue_BoolValue:
			all[value.Key] = fmt.Sprint(v.BoolValue)
		case *common.AnyValue_DoubleValue:
			all[value.Key] = fmt.Sprint(v.DoubleValue)
		case *common.AnyValue_ArrayValue:
			var texts []string
			for _, text := range v.ArrayValue.GetValues() {
				texts = append(texts, text.GetStringValue())
			}
			all[value.Key] = strings.Join(texts, ",")
		}
	}
	return all
}

// Trace waits until the trace has spans with all of these names, and returns all of the trace's spans.
func (c *Collector) Trace(ctx context.Context, t *testing.T, traceID string, names ...string) []Span {
	t.Helper()
	for {
		c.mu.Lock()
		var found []Span
		for _, span := range c.spans {
			if span.TraceID == traceID {
				found = append(found, span)
			}
		}
		grew := c.grew
		c.mu.Unlock()
		missing := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
			return slices.ContainsFunc(found, func(s Span) bool { return s.Name == name })
		})
		if len(missing) == 0 {
			return found
		}
		select {
		case <-grew:
		case <-ctx.Done():
			t.Fatalf("the trace has no %q, only %+v", missing, found)
		}
	}
}

func (c *Collector) Received() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.raw)
}
