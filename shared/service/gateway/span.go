package gateway

import (
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	api "go.opentelemetry.io/otel/trace"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/platform/trace"
	"cutroom/shared/service/gateway/upstream"
)

const firstTokenEvent = "first_token"

// The zero upstreamSpan records nothing.
type upstreamSpan struct {
	span   api.Span
	parent string
}

func (c *completion) startSpan(l upstream.Slot) upstreamSpan {
	if c.gateway.config.Tracer == nil {
		return upstreamSpan{}
	}
	ctx, span := c.gateway.config.Tracer.Start(c.r.Context(), "upstream", api.WithSpanKind(api.SpanKindClient))
	if !span.IsRecording() {
		return upstreamSpan{}
	}
	operation := string(c.route)
	switch c.route {
	case catalog.Chat, catalog.Responses, catalog.Messages:
		operation = "chat"
	case catalog.Completions:
		operation = "text_completion"
	}
	// Attribute names follow OpenTelemetry's "Semantic conventions for generative AI".
	span.SetAttributes(
		attribute.String("gen_ai.operation.name", operation), attribute.String("gen_ai.request.model", c.pool.Model.ID),
		attribute.String("cutroom.upstream", l.Name()), attribute.Bool("cutroom.stream", c.request.Stream),
	)
	return upstreamSpan{span, trace.Parent(ctx)}
}

// endSpan records only a failure's outcome, because its error may contain text from an upstream.
func (c *completion) endSpan(s upstreamSpan, outcome Outcome) {
	span := s.span
	if span == nil {
		return
	}
	if !c.firstToken.IsZero() {
		span.AddEvent(firstTokenEvent, api.WithTimestamp(c.firstToken))
	}
	if c.settled {
		span.SetAttributes(
			attribute.Int64("gen_ai.usage.input_tokens", c.counts.PromptTokens),
			attribute.Int64("gen_ai.usage.output_tokens", c.counts.CompletionTokens))
	}
	span.SetAttributes(attribute.String("cutroom.outcome", string(outcome)))
	if outcome == Failed || outcome == TimedOut || outcome == Overloaded {
		span.SetStatus(codes.Error, string(outcome))
	}
	span.End()
}
