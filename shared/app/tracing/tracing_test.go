package tracing_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"go.opentelemetry.io/otel/attribute"
	api "go.opentelemetry.io/otel/trace"

	"cutroom/shared/app/tracing"
	"cutroom/shared/platform/otlp"
	"cutroom/shared/platform/trace"
	"cutroom/shared/platform/trace/tracetest"
	"cutroom/shared/testkit/await"
)

const (
	traceID = "5759e988bd862e3fe1be46a994272793"
	remote  = "53995c3f42cd8ad8"
	region  = "eu-north-1"
)

func remoteContext(t *testing.T) context.Context {
	return trace.WithParent(t.Context(), "00-"+traceID+"-"+remote+"-01")
}

func bounded(t *testing.T) context.Context {
	t.Helper()
	return await.Context(t)
}

func open(t *testing.T, endpoint string, keys aws.CredentialsProvider, logger *slog.Logger) otlp.Traces {
	t.Helper()
	traces, err := tracing.New(t.Context(), func(name string) string {
		return map[string]string{"CUTROOM_TRACING": "xray"}[name]
	}, aws.Config{Region: region, Credentials: keys, BaseEndpoint: &endpoint}, "cutroom-worker", logger)
	if err != nil {
		t.Fatal(err)
	}
	return traces
}

// guarded starts a server that checks signatures and forwards requests to the collector. It returns the server's URL,
// and a function that returns the access key ids used so far.
func guarded(t *testing.T, collector *tracetest.Collector, secrets map[string]credentialsOf) (string, func() []string) {
	t.Helper()
	behind, err := url.Parse(collector.URL)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var signedBy []string
	proxy := httputil.NewSingleHostReverseProxy(behind)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, err := verify(r, region, "xray", secrets)
		if err != nil {
			t.Error(err)
			http.Error(w, err.Error(), http.StatusForbidden)
			return
		}
		mu.Lock()
		signedBy = append(signedBy, id)
		mu.Unlock()
		if r.Header.Get("Api-Key") != "" {
			t.Error("X-Ray got another collector's key")
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return append([]string(nil), signedBy...)
	}
}

func TestSpansAreSentToXRay(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "api-key=another-collectors")
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
	collector := tracetest.Start(t)
	endpoint, _ := guarded(t, collector, map[string]credentialsOf{"AKID": {secret: "secret", token: "token"}})
	traces := open(t, endpoint, credentials.NewStaticCredentialsProvider("AKID", "secret", "token"),
		slog.New(slog.DiscardHandler))
	ctx, run := traces.Tracer().Start(remoteContext(t), "job.run", api.WithAttributes(
		attribute.String("cutroom.job", "job_1"), attribute.Int("cutroom.run", 1), attribute.String("http.route", "/v1/jobs")))
	_, stage := traces.Tracer().Start(ctx, "engine")
	stage.End()
	run.End()
	traces.Close()

	spans := map[string]tracetest.Span{}
	for _, span := range collector.Trace(bounded(t), t, traceID, "job.run", "engine") {
		spans[span.Name] = span
	}
	outer, inner := spans["job.run"], spans["engine"]
	if outer.Service != "cutroom-worker" || outer.Parent != remote || inner.Parent != outer.SpanID {
		t.Errorf("the run is %+v, and its stage %+v", outer, inner)
	}
	for name, want := range map[string]string{
		"cutroom_job": "job_1", "cutroom_run": "1", "http.route": "/v1/jobs", "aws.xray.annotations": "cutroom_job,cutroom_run",
	} {
		if got := outer.Attributes[name]; got != want {
			t.Errorf("the attribute %s is %q, want %q", name, got, want)
		}
	}
	if list, found := inner.Attributes["aws.xray.annotations"]; found {
		t.Errorf("a span without attributes has the annotations %q", list)
	}
}

func TestExpiredCredentialsAreRenewed(t *testing.T) {
	collector := tracetest.Start(t)
	endpoint, signedBy := guarded(t, collector,
		map[string]credentialsOf{"AKID1": {secret: "first"}, "AKID2": {secret: "second"}})
	issued := []aws.Credentials{
		{AccessKeyID: "AKID1", SecretAccessKey: "first", CanExpire: true, Expires: time.Now().Add(-time.Second)},
		{AccessKeyID: "AKID2", SecretAccessKey: "second", CanExpire: true, Expires: time.Now().Add(time.Hour)},
	}
	keys := aws.NewCredentialsCache(aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		if len(issued) == 0 {
			return aws.Credentials{}, errors.New("valid credentials were requested again")
		}
		next := issued[0]
		issued = issued[1:]
		return next, nil
	}))
	traces := open(t, endpoint, keys, slog.New(slog.DiscardHandler))
	for _, name := range []string{"first", "second", "third"} {
		_, span := traces.Tracer().Start(remoteContext(t), name)
		span.End()
		collector.Trace(bounded(t), t, traceID, name) // makes each span a separate batch
	}
	traces.Close()
	if got := strings.Join(signedBy(), " "); got != "AKID1 AKID2 AKID2" {
		t.Errorf("the requests are signed with %s", got)
	}
}

func TestUnsentTracesAreLogged(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("a redirect was followed")
	}))
	defer elsewhere.Close()
	server := func(handle http.HandlerFunc) string {
		s := httptest.NewServer(handle)
		t.Cleanup(s.Close)
		return s.URL
	}
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	static := credentials.NewStaticCredentialsProvider("AKID", "secret", "")
	for _, c := range []struct {
		name, endpoint string
		keys           aws.CredentialsProvider
		says           string
	}{
		{"the endpoint is missing", gone.URL, static, "refused"},
		{"Transaction Search is off", server(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "use the CloudWatchLogs destination", http.StatusBadRequest)
		}), static, "use the CloudWatchLogs destination"},
		{"a redirection", server(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		}), static, "307"},
		{"an endless response", server(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			for err := error(nil); err == nil; _, err = w.Write(make([]byte, 1<<16)) {
			}
		}), static, "too large"},
		{"no credentials", server(func(http.ResponseWriter, *http.Request) { t.Error("a request was not signed") }),
			aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
				return aws.Credentials{}, errors.New("the role is gone")
			}), "the role is gone"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var log bytes.Buffer
			traces := open(t, c.endpoint, c.keys, slog.New(slog.NewTextHandler(&log, nil)))
			_, span := traces.Tracer().Start(remoteContext(t), "work")
			span.End()
			traces.Close()
			if text := log.String(); !strings.Contains(text, c.says) || !strings.Contains(text, "spans=1") || len(text) > 1000 {
				t.Errorf("the log is %.2000s", text)
			}
		})
	}
}

// Spans that cannot be sent are dropped when the traces are closed.
func TestHangingEndpointBlocksNothing(t *testing.T) {
	arrived, ended := make(chan struct{}, 100), make(chan struct{}, 100)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // without this, the server does not notice a disconnect
		arrived <- struct{}{}
		<-r.Context().Done()
		ended <- struct{}{}
	}))
	defer server.Close()
	traces := open(t, server.URL, credentials.NewStaticCredentialsProvider("AKID", "secret", ""),
		slog.New(slog.DiscardHandler))
	for range 10_000 { // several times the queue's capacity
		_, span := traces.Tracer().Start(remoteContext(t), "work")
		span.End()
	}
	wait := bounded(t)
	for _, event := range []chan struct{}{arrived, nil, ended} {
		if event == nil {
			traces.Close()
			continue
		}
		select {
		case <-event:
		case <-wait.Done():
			t.Fatal("a request did not start, or continued after the traces were closed")
		}
	}
}

func TestTracingIsOffByDefault(t *testing.T) {
	open := func(getenv func(string) string) (otlp.Traces, error) {
		return tracing.New(t.Context(), getenv, aws.Config{}, "cutroom-worker", slog.New(slog.DiscardHandler))
	}
	traces, err := open(func(string) string { return "" })
	if err != nil || traces.Tracer() != nil {
		t.Errorf("%v, %v", traces.Tracer(), err)
	}
	traces.Close()
	if _, err := open(func(string) string { return "yes" }); err == nil {
		t.Error("an invalid setting was accepted")
	}
}

func TestMissingRegionIsReported(t *testing.T) {
	for says, clients := range map[string]aws.Config{
		"region":      {Credentials: credentials.NewStaticCredentialsProvider("AKID", "secret", "")},
		"credentials": {Region: region},
	} {
		_, err := tracing.New(t.Context(), func(name string) string {
			return map[string]string{"CUTROOM_TRACING": "xray"}[name]
		}, clients, "cutroom-worker", slog.New(slog.DiscardHandler))
		if err == nil || !strings.HasPrefix(err.Error(), "CUTROOM_TRACING: ") || !strings.Contains(err.Error(), says) {
			t.Errorf("without %s: %v", says, err)
		}
	}
}
