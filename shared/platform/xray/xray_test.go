package xray_test

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"go.opentelemetry.io/otel/attribute"
	api "go.opentelemetry.io/otel/trace"

	"cutroom/shared/platform/awsconfig"
	"cutroom/shared/platform/trace"
	"cutroom/shared/platform/xray"
	"cutroom/shared/testkit/patience"
)

const segment = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1;Lineage=1:a87bd80c:0"

// daemon receives what is sent to the X-Ray daemon.
type daemon struct{ net.PacketConn }

func newDaemon(t *testing.T) daemon {
	t.Helper()
	connection, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close() })
	if err := connection.SetDeadline(time.Now().Add(patience.Max)); err != nil {
		t.Fatal(err)
	}
	return daemon{connection}
}

// document returns the next document.
func (d daemon) document(t *testing.T) map[string]any {
	t.Helper()
	datagram := make([]byte, 64<<10)
	n, _, err := d.ReadFrom(datagram)
	if err != nil {
		t.Fatal(err)
	}
	header, text, found := strings.Cut(string(datagram[:n]), "\n")
	var document map[string]any
	if !found || header != `{"format":"json","version":1}` || json.Unmarshal([]byte(text), &document) != nil {
		t.Fatalf("the datagram is %q", datagram[:n])
	}
	return document
}

// A function's work is sent as subsegments of the segment that Lambda makes.
func TestAFunctionSendsSubsegments(t *testing.T) {
	daemon := newDaemon(t)
	tracer, err := xray.NewFunction(daemon.LocalAddr().String(), time.Now, rand.Uint64)
	if err != nil {
		t.Fatal(err)
	}
	before := float64(time.Now().Unix())
	ctx, request := tracer.Start(xray.WithParent(t.Context(), segment), "POST /v1/jobs/{id}", api.WithAttributes(
		attribute.String("http.request.method", "POST"), attribute.String("http.route", "/v1/jobs/{id}"),
		attribute.Int("http.response.status_code", 429), attribute.String("cutroom.account", "acme")))
	if got, want := trace.Parent(ctx), "00-5759e988bd862e3fe1be46a994272793-"+request.SpanContext().SpanID().String()+
		"-01"; got != want {
		t.Errorf("a job goes on with %s, want %s", got, want)
	}
	_, call := tracer.Start(ctx, "upstream", api.WithSpanKind(api.SpanKindClient))
	call.AddEvent("first_token")
	trace.Fail(call, "timed_out", errors.New("private"))
	call.End()
	request.End()

	inner, outer := daemon.document(t), daemon.document(t)
	for field, want := range map[string]any{
		"name": "POST /v1/jobs/id", "type": "subsegment", "trace_id": "1-5759e988-bd862e3fe1be46a994272793",
		"parent_id": "53995c3f42cd8ad8",
		"error":     true, "throttle": true, "fault": nil,
	} {
		if outer[field] != want {
			t.Errorf("%s is %v, want %v", field, outer[field], want)
		}
	}
	if id, _ := outer["id"].(string); !regexp.MustCompile(`^[0-9a-f]{16}$`).MatchString(id) || inner["parent_id"] != id {
		t.Errorf("%v is beneath %v", inner, outer["id"])
	}
	if start, end := outer["start_time"].(float64), outer["end_time"].(float64); start < before || end < start {
		t.Errorf("it lasts from %f to %f", start, end)
	}
	http, _ := json.Marshal(outer["http"])
	if string(http) != `{"request":{"method":"POST","url":"/v1/jobs/{id}"},"response":{"status":429}}` {
		t.Errorf("http is %s", http)
	}
	if annotations := outer["annotations"].(map[string]any); annotations["cutroom_account"] != "acme" {
		t.Errorf("annotations are %v", annotations)
	}
	if inner["namespace"] != "remote" || inner["fault"] != true ||
		inner["metadata"].(map[string]any)["first_token"] == nil {
		t.Errorf("the call is %v", inner)
	}
	if text, _ := json.Marshal(inner); strings.Contains(string(text), "private") {
		t.Errorf("the error's text is told: %s", text)
	}
}

// The calls that clients of AWS make show as calls of AWS.
func TestCallsOfAWSAreSubsegments(t *testing.T) {
	daemon := newDaemon(t)
	status := http.StatusOK
	aws := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(`{"__type":"com.amazonaws.dynamodb#ResourceNotFoundException"}`))
	}))
	defer aws.Close()
	config, tracer, err := awsconfig.Traced(environment(
		"AWS_REGION=eu-north-1", "AWS_ACCESS_KEY_ID=a", "AWS_SECRET_ACCESS_KEY=b", "AWS_ENDPOINT_URL="+aws.URL,
		"CUTROOM_TRACING=xray", "AWS_XRAY_DAEMON_ADDRESS="+daemon.LocalAddr().String()))
	if err != nil {
		t.Fatal(err)
	}
	client := dynamodb.NewFromConfig(config)
	if _, err := client.ListTables(t.Context(), nil); err != nil { // belongs to no trace
		t.Fatal(err)
	}
	ctx, span := tracer.Start(xray.WithParent(t.Context(), segment), "work")
	if _, err := client.ListTables(ctx, nil); err != nil {
		t.Fatal(err)
	}
	status = http.StatusBadRequest
	if _, err := client.ListTables(ctx, nil); err == nil {
		t.Fatal("it succeeded")
	}
	for _, failed := range []any{nil, true} {
		call := daemon.document(t)
		if call["name"] != "DynamoDB" || call["namespace"] != "aws" ||
			call["aws"].(map[string]any)["operation"] != "ListTables" ||
			call["parent_id"] != span.SpanContext().SpanID().String() || call["fault"] != failed {
			t.Errorf("failed %v: %v", failed, call)
		}
	}
}

// Lambda decides what is traced; nothing is sent for the rest.
func TestWhatIsNotSampledIsNotSent(t *testing.T) {
	daemon := newDaemon(t)
	tracer, err := xray.NewFunction(daemon.LocalAddr().String(), time.Now, rand.Uint64)
	if err != nil {
		t.Fatal(err)
	}
	for _, parent := range []string{strings.Replace(segment, "Sampled=1", "Sampled=0", 1), ""} {
		ctx, span := tracer.Start(xray.WithParent(t.Context(), parent), "unsampled")
		if header := xray.Header(ctx); header != "" {
			t.Errorf("AWS goes on with %s", header)
		}
		span.End()
	}
	ctx, span := tracer.Start(xray.WithParent(t.Context(), segment), "sampled")
	if got, want := xray.Header(ctx), "Root=1-5759e988-bd862e3fe1be46a994272793;Parent="+
		span.SpanContext().SpanID().String()+";Sampled=1"; got != want {
		t.Errorf("AWS goes on with %s, want %s", got, want)
	}
	span.End()
	if first := daemon.document(t); first["name"] != "sampled" {
		t.Errorf("got %v", first)
	}
}

// The attributes of a span are bounded, and nothing changes once it has ended.
func TestASpanIsBoundedAndEndsOnce(t *testing.T) {
	daemon := newDaemon(t)
	tracer, err := xray.NewFunction(daemon.LocalAddr().String(), time.Now, rand.Uint64)
	if err != nil {
		t.Fatal(err)
	}
	start := time.Unix(1_800_000_000, 250_000_000)
	ctx, span := tracer.Start(xray.WithParent(t.Context(), segment), "work", api.WithTimestamp(start))
	span.SetAttributes(attribute.String("long", strings.Repeat("é", 1000)))
	for i := range 100 {
		span.SetAttributes(attribute.Int("n"+strconv.Itoa(i), i))
		span.AddEvent("e" + strconv.Itoa(i))
	}
	if !span.IsRecording() {
		t.Error("it does not record")
	}
	span.End(api.WithTimestamp(start.Add(time.Second)))
	span.SetName("late")
	span.End()
	if span.IsRecording() {
		t.Error("it records what comes after its end")
	}
	_, next := span.TracerProvider().Tracer("other").Start(ctx, "next")
	next.End()

	document := daemon.document(t)
	if document["name"] != "work" || document["start_time"] != 1_800_000_000.25 ||
		document["end_time"] != 1_800_000_001.25 {
		t.Errorf("got %v", document)
	}
	annotations, events := document["annotations"].(map[string]any), document["metadata"].(map[string]any)
	if len(annotations) != 32 || len(events) != 32 || annotations["long"] != strings.Repeat("é", 256) {
		t.Errorf("it is described by %v, %v", annotations, events)
	}
	if beneath := daemon.document(t); beneath["name"] != "next" || beneath["parent_id"] != document["id"] {
		t.Errorf("after its end came %v", beneath)
	}
}

func TestWrongTracingHeaders(t *testing.T) {
	for _, header := range []string{
		"", "Root=1-5759e988-bd862e3fe1be46a994272793", "Parent=53995c3f42cd8ad8;Sampled=1",
		"Root=2-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8",
		"Root=1-5759e988-bd862e3f;Parent=53995c3f42cd8ad8",
		"Root=1-00000000-000000000000000000000000;Parent=53995c3f42cd8ad8", ";;=;",
	} {
		if got := trace.Parent(xray.WithParent(context.Background(), header)); got != "" {
			t.Errorf("%q is taken for %s", header, got)
		}
	}
}

func TestWhatTheEnvironmentAsksFor(t *testing.T) {
	for _, c := range []struct {
		variables string
		traced    bool
		err       string
	}{
		{"", false, ""},
		{"AWS_XRAY_DAEMON_ADDRESS=127.0.0.1:2000", false, ""},
		{"CUTROOM_TRACING=xray", false, ""},
		{"CUTROOM_TRACING=xray AWS_XRAY_DAEMON_ADDRESS=127.0.0.1:2000", true, ""},
		{"CUTROOM_TRACING=on", false, `CUTROOM_TRACING: "on" is not xray, its only valid value`},
	} {
		tracer, err := xray.FunctionFromEnvironment(environment(strings.Fields(c.variables)...))
		if (tracer != nil) != c.traced || err == nil && c.err != "" || err != nil && err.Error() != c.err {
			t.Errorf("%s: %v, %v", c.variables, tracer, err)
		}
	}
}

func environment(variables ...string) func(string) string {
	return func(name string) string {
		for _, variable := range variables {
			if value, found := strings.CutPrefix(variable, name+"="); found {
				return value
			}
		}
		return ""
	}
}
