package xray

import (
	"context"
	"encoding/binary"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	api "go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/embedded"
	"go.opentelemetry.io/otel/trace/noop"
)

const (
	// maxAttributes bounds the attributes and the events of a span, maxText each text
	// among them, in code points.
	maxAttributes, maxText = 32, 256
)

// NewFunction returns the tracer of a function. Lambda says for each invocation whether
// it is traced. Spans beneath it are sent as they end, because a function is frozen once
// it has answered, with all that it meant to do later. Lambda sets the daemon's address
// as AWS_XRAY_DAEMON_ADDRESS; random returns the ids of spans.
//
// It implements OpenTelemetry's API without its SDK, which samples, batches and measures
// itself: a function needs none of that, and would start a tenth more slowly even when it
// is not traced.
//
// Errors: the address is not a UDP address.
func NewFunction(address string, now func() time.Time, random func() uint64) (api.Tracer, error) {
	daemon, err := newDaemon(address)
	if err != nil {
		return nil, err
	}
	return &tracer{daemon: daemon, now: now, random: random}, nil
}

// tracer makes the spans of a function.
type tracer struct {
	embedded.Tracer
	daemon *daemon
	now    func() time.Time
	random func() uint64
}

// Start begins a span beneath the context's span. If that is not sampled, or there is
// none, nothing is recorded and the context is returned unchanged.
func (t *tracer) Start(ctx context.Context, name string, options ...api.SpanStartOption) (context.Context, api.Span) {
	config := api.NewSpanStartConfig(options...)
	parent := api.SpanContextFromContext(ctx)
	if !parent.IsValid() || !parent.IsSampled() || config.NewRoot() {
		return noop.Tracer{}.Start(ctx, name)
	}
	var id api.SpanID
	for !id.IsValid() {
		binary.BigEndian.PutUint64(id[:], t.random())
	}
	s := &span{tracer: t, recorded: Span{
		Name: name, Context: parent.WithSpanID(id).WithRemote(false), Parent: parent, Kind: config.SpanKind(),
		Start: config.Timestamp(),
	}}
	if s.recorded.Start.IsZero() {
		s.recorded.Start = t.now()
	}
	s.SetAttributes(config.Attributes()...)
	return api.ContextWithSpan(ctx, s), s
}

// provider returns the function's one tracer for any name.
type provider struct {
	embedded.TracerProvider
	tracer *tracer
}

// Tracer returns the tracer.
func (p provider) Tracer(string, ...api.TracerOption) api.Tracer { return p.tracer }

// span is a span that is recorded. It may be used by several goroutines.
type span struct {
	embedded.Span
	tracer *tracer

	mu       sync.Mutex
	recorded Span
	ended    bool
}

// change changes the span unless it has ended.
func (s *span) change(do func(*Span)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		do(&s.recorded)
	}
}

// End ends the span, once, and sends it.
func (s *span) End(options ...api.SpanEndOption) {
	config := api.NewSpanEndConfig(options...)
	end := config.Timestamp()
	if end.IsZero() {
		end = s.tracer.now()
	}
	s.change(func(recorded *Span) {
		s.ended, recorded.End = true, end
		s.tracer.daemon.send(*recorded)
	})
}

// AddEvent records an event without its attributes.
func (s *span) AddEvent(name string, options ...api.EventOption) {
	config := api.NewEventConfig(options...)
	at := config.Timestamp()
	if at.IsZero() {
		at = s.tracer.now()
	}
	s.change(func(recorded *Span) {
		if len(recorded.Events) < maxAttributes {
			recorded.Events = append(recorded.Events, Event{name, at})
		}
	})
}

// SetAttributes adds attributes, as far as there is room.
func (s *span) SetAttributes(attributes ...attribute.KeyValue) {
	s.change(func(recorded *Span) {
		for _, a := range attributes[:min(len(attributes), maxAttributes-len(recorded.Attributes))] {
			if text := []rune(a.Value.AsString()); a.Value.Type() == attribute.STRING && len(text) > maxText {
				a = a.Key.String(string(text[:maxText]))
			}
			recorded.Attributes = append(recorded.Attributes, a)
		}
	})
}

// SetStatus records whether the span failed.
func (s *span) SetStatus(code codes.Code, _ string) {
	if code != codes.Unset {
		s.change(func(recorded *Span) { recorded.Failed = code == codes.Error })
	}
}

// SetName renames the span.
func (s *span) SetName(name string) { s.change(func(recorded *Span) { recorded.Name = name }) }

// IsRecording reports whether the span has not ended.
func (s *span) IsRecording() (recording bool) {
	s.change(func(*Span) { recording = true })
	return recording
}

// SpanContext returns the ids of the span.
func (s *span) SpanContext() api.SpanContext { return s.recorded.Context }

// RecordError keeps nothing: the text of an error may hold a client's data.
func (s *span) RecordError(error, ...api.EventOption) {}

// AddLink keeps nothing: X-Ray has no place for links.
func (s *span) AddLink(api.Link) {}

// TracerProvider returns the provider of the function's tracer.
func (s *span) TracerProvider() api.TracerProvider { return provider{tracer: s.tracer} }
