package xray_test

import (
	"context"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"

	"cutroom/shared/platform/trace"
	"cutroom/shared/platform/xray"
)

const segment = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1;Lineage=1:a87bd80c:0"

func TestTraceHeaderIsForwarded(t *testing.T) {
	const want = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1"
	if got := xray.Header(xray.WithParent(context.Background(), segment)); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	unsampled := strings.Replace(segment, "Sampled=1", "Sampled=0", 1)
	if got := xray.Header(xray.WithParent(context.Background(), unsampled)); got != "" {
		t.Errorf("an unsampled trace has the header %q", got)
	}
}

func TestAnnotationKeysAreValid(t *testing.T) {
	for key, want := range map[string]string{"cutroom.job": "cutroom_job", "http.route": ""} {
		if got := xray.Annotation(attribute.Key(key)); got != want {
			t.Errorf("%s becomes %q, want %q", key, got, want)
		}
	}
}

func TestInvalidTracingHeadersAreIgnored(t *testing.T) {
	for _, header := range []string{
		"", "Root=1-5759e988-bd862e3fe1be46a994272793", "Parent=53995c3f42cd8ad8;Sampled=1",
		"Root=2-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8",
		"Root=1-5759e988-bd862e3f;Parent=53995c3f42cd8ad8",
		"Root=1-00000000-000000000000000000000000;Parent=53995c3f42cd8ad8", ";;=;",
	} {
		if got := trace.Parent(xray.WithParent(context.Background(), header)); got != "" {
			t.Errorf("%q is accepted as %s", header, got)
		}
	}
}

func TestEnabledRejectsOtherValues(t *testing.T) {
	for value, want := range map[string]bool{"": false, "xray": true} {
		if got, err := xray.Enabled(func(string) string { return value }); err != nil || got != want {
			t.Errorf("%q: %t, %v", value, got, err)
		}
	}
	if _, err := xray.Enabled(func(string) string { return "on" }); err == nil ||
		err.Error() != `CUTROOM_TRACING: invalid value "on"; the only valid value is xray` {
		t.Errorf("on: %v", err)
	}
}
