package tracing_test

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"cutroom/shared/app/tracing"
	"cutroom/shared/platform/trace"
)

// A container's spans are sent to X-Ray: what another program asked for as a
// segment, and all beneath that as subsegments.
func TestAContainerSendsSegments(t *testing.T) {
	var documents []map[string]any
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct{ TraceSegmentDocuments []string }
		if text, err := io.ReadAll(r.Body); r.URL.Path != "/TraceSegments" || err != nil ||
			json.Unmarshal(text, &body) != nil {
			t.Errorf("%s %s: %v", r.URL, text, err)
		}
		for _, text := range body.TraceSegmentDocuments {
			var document map[string]any
			if err := json.Unmarshal([]byte(text), &document); err != nil {
				t.Error(err)
			}
			documents = append(documents, document)
		}
		_, _ = w.Write([]byte(`{}`))
	}))
	defer server.Close()
	clients := aws.Config{Region: "eu-north-1", Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""),
		BaseEndpoint: &server.URL}
	traces, err := tracing.New(t.Context(), func(name string) string {
		return map[string]string{"CUTROOM_TRACING": "xray"}[name]
	}, clients, "cutroom-worker", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, run := traces.Tracer().Start(trace.WithParent(t.Context(),
		"00-5759e988bd862e3fe1be46a994272793-53995c3f42cd8ad8-01"), "job.run")
	_, stage := traces.Tracer().Start(ctx, "engine")
	stage.End()
	run.End()
	traces.Close()
	if len(documents) != 2 {
		t.Fatalf("got %v", documents)
	}
	inner, outer := documents[0], documents[1]
	if outer["name"] != "cutroom-worker" || outer["type"] != nil || outer["parent_id"] != "53995c3f42cd8ad8" ||
		outer["trace_id"] != "1-5759e988-bd862e3fe1be46a994272793" ||
		outer["annotations"].(map[string]any)["operation"] != "job.run" {
		t.Errorf("the run is %v", outer)
	}
	if inner["name"] != "engine" || inner["type"] != "subsegment" || inner["parent_id"] != outer["id"] {
		t.Errorf("the stage is %v", inner)
	}
}

func TestWithoutSettingsNothingIsTraced(t *testing.T) {
	traces, err := tracing.New(t.Context(), func(string) string { return "" }, aws.Config{}, "cutroom-worker",
		slog.New(slog.DiscardHandler))
	if err != nil || traces.Tracer() != nil {
		t.Errorf("%v, %v", traces.Tracer(), err)
	}
	traces.Close()
	if _, err := tracing.New(t.Context(), func(string) string { return "yes" }, aws.Config{}, "cutroom-worker",
		nil); err == nil {
		t.Error("a wrong setting is taken")
	}
}
