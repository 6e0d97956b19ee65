package worker

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	api "go.opentelemetry.io/otel/trace"

	"cutroom/shared/domain/job"
	"cutroom/shared/platform/trace"
)

// The spans of a job's wait and of each run, with its stages, are children of the submission's span.
const (
	queueSpan = "job.queue"
	runSpan   = "job.run"
)

func submitted(ctx context.Context, j job.Job) context.Context { return trace.WithParent(ctx, j.Trace) }

// beginRun starts a run's span. For the first run, it also records how long the job waited.
func (w *Worker) beginRun(ctx context.Context, j job.Job, started time.Time) (context.Context, api.Span) {
	ctx, tracer := submitted(ctx, j), trace.OrNoop(w.config.Tracer)
	described := api.WithAttributes(
		attribute.String("cutroom.job", j.ID), attribute.String(
			"cutroom.account", j.Account,
		), attribute.String("cutroom.model", j.Model),
		attribute.String("cutroom.lane", string(j.Lane)), attribute.Int("cutroom.run", j.Runs))
	if j.Runs == 1 {
		_, wait := tracer.Start(ctx, queueSpan, described, api.WithTimestamp(j.CreatedAt))
		wait.End(api.WithTimestamp(started))
	}
	return tracer.Start(ctx, runSpan, described, api.WithTimestamp(started), api.WithSpanKind(api.SpanKindConsumer))
}

func endRun(span api.Span, ended *Run) {
	span.SetAttributes(attribute.String("cutroom.outcome", string(ended.Outcome)))
	if ended.Outcome == Failed || ended.Outcome == Repeated || ended.Outcome == Lost {
		span.SetStatus(codes.Error, string(ended.Code))
	}
	span.End()
}

func (w *Worker) beginStage(ctx context.Context, name string) (_ context.Context, end func(error)) {
	ctx, span := trace.OrNoop(w.config.Tracer).Start(ctx, name)
	return ctx, func(err error) {
		if err != nil {
			trace.Fail(span, string(asFailure(err).Code), err)
		}
		span.End()
	}
}
