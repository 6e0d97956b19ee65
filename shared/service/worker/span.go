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

// The spans of a job's way, beneath that of its submission: the wait for a worker,
// and each run, with one for each of its stages.
const (
	queueSpan = "job.queue"
	runSpan   = "job.run"
)

// submitted gives a context whose spans are beneath that of the job's submission.
func submitted(ctx context.Context, j job.Job) context.Context { return trace.WithParent(ctx, j.Trace) }

// beginRun begins the span of a run, and tells of the wait before the first one.
// The caller ends it, by endRun.
func (w *Worker) beginRun(ctx context.Context, j job.Job, started time.Time) (context.Context, api.Span) {
	ctx, tracer := submitted(ctx, j), trace.Or(w.Tracer)
	described := api.WithAttributes(
		attribute.String("cutroom.job", j.ID), attribute.String("cutroom.account", j.Account), attribute.String("cutroom.model", j.Model),
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

// beginStage begins the span of a stage; the caller ends it with how the stage
// ended.
func (w *Worker) beginStage(ctx context.Context, name string) (_ context.Context, end func(error)) {
	ctx, span := trace.Or(w.Tracer).Start(ctx, name)
	return ctx, func(err error) {
		if err != nil {
			trace.Fail(span, string(asFailure(err).Code), err)
		}
		span.End()
	}
}
