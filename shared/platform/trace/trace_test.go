package trace_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"cutroom/shared/platform/trace"
)

const (
	traceID = "4bf92f3577b34da6a3ce929d0e0e4736"
	parent  = "00-" + traceID + "-00f067aa0ba902b7-01"
)

func TestUnrecordedTraceIsPassedOn(t *testing.T) {
	ctx := trace.WithParent(t.Context(), parent)
	if got := trace.Parent(ctx); got != parent {
		t.Errorf("got %q", got)
	}
	ctx, span := trace.OrNoop(nil).Start(ctx, "work")
	defer span.End()
	if got := trace.Parent(ctx); got != parent {
		t.Errorf("below a span that is not recorded: %q", got)
	}
}

func TestInvalidTraceparentsAreIgnored(t *testing.T) {
	for _, text := range []string{
		"", "x", "00-" + traceID + "-00f067aa0ba902b7", "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
		"ff-" + traceID + "-00f067aa0ba902b7-01", parent + "\r\nX-Other: 1", strings.ToUpper(parent),
	} {
		if got := trace.Parent(trace.WithParent(t.Context(), text)); got != "" {
			t.Errorf("%q is accepted as %q", text, got)
		}
	}
}

func TestLogLinesHaveTraceID(t *testing.T) {
	var out bytes.Buffer
	logger := slog.New(trace.Logger(slog.NewTextHandler(&out, nil))).With("a", 1)
	logger.InfoContext(trace.WithParent(t.Context(), parent), "traced")
	logger.WithGroup("g").InfoContext(context.Background(), "not")
	lines := strings.Split(out.String(), "\n")
	if !strings.Contains(lines[0], " trace_id="+traceID) || strings.Contains(lines[1], "trace_id") {
		t.Error(out.String())
	}
}
