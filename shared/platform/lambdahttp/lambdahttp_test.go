package lambdahttp_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"cutroom/shared/platform/httpserver"
	"cutroom/shared/platform/lambdahttp"
	"cutroom/shared/platform/trace"
	"cutroom/shared/testkit/await"
	"cutroom/shared/testkit/lambdatest"
)

func TestMain(m *testing.M) {
	if os.Getenv("AWS_LAMBDA_RUNTIME_API") == "" {
		os.Exit(m.Run())
	}
	lambdahttp.Main(func() (http.Handler, lambdahttp.Mode, error) {
		form, err := lambdahttp.ResponseMode(os.Getenv)
		return httpserver.Handler(httpserver.Config{
			Handler: handler(), Logger: lambdahttp.NewLogger(os.Stderr),
			OnPanic: func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusInternalServerError)
				io.WriteString(w, `{"detail":"Internal server error"}`)
			},
		}), form, err
	})
}

type seen struct {
	Method, Path, Host, RequestID string
	Query                         map[string][]string
	Header                        http.Header
	Length                        int64
	Body                          []byte
	Left                          time.Duration
}

func handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/v1/seen/{id}", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusUnprocessableEntity)
			return
		}
		deadline, _ := r.Context().Deadline()
		httpserver.SetAccount(r.Context(), "studio")
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(seen{
			r.Method, r.URL.Path, r.Host, httpserver.RequestID(r.Context()), r.URL.Query(), r.Header, r.ContentLength, body,
			time.Until(deadline),
		})
	})
	mux.HandleFunc("/v1/answer", func(w http.ResponseWriter, _ *http.Request) {
		header := w.Header()
		header["X-Two"] = []string{"a", "b"}
		header.Set("Trailer", "X-Declared")
		header.Set("Connection", "close")
		header.Set("X-Declared", "early")
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusAccepted)
		w.WriteHeader(http.StatusTeapot)
		header.Set("X-Late", "late")
		header.Set("X-Declared", "late")
		header.Set(http.TrailerPrefix+"X-Trailing", "late")
		w.Write([]byte{0xff, 0, 1})
	})
	mux.HandleFunc("/v1/nothing", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/v1/gone", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("/v1/steps", func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		for _, step := range []string{"one", "two", "three"} {
			// The test decides when each step runs.
			if _, err := http.Get(r.Header.Get("X-Next")); err != nil {
				panic(err)
			}
			io.WriteString(w, step)
			http.NewResponseController(w).Flush()
		}
	})
	mux.HandleFunc("/v1/large", func(w http.ResponseWriter, _ *http.Request) {
		for range 20 {
			w.Write(make([]byte, 1<<20))
		}
	})
	mux.HandleFunc("/v1/panic", func(http.ResponseWriter, *http.Request) { panic("a bug") })
	mux.HandleFunc("/v1/cut", func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "half of it")
		http.NewResponseController(w).Flush()
		panic("a bug")
	})
	return mux
}

func start(t *testing.T, settings ...string) *lambdatest.Function {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	f, err := lambdatest.Start(t.Context(), lambdatest.Program(program), settings...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Kill)
	return f
}

func event(method, resource, path string, change func(*events.APIGatewayProxyRequest)) []byte {
	e := events.APIGatewayProxyRequest{
		Resource: resource, Path: path, HTTPMethod: method,
		MultiValueHeaders: map[string][]string{"Host": {"api.example.com"}, "X-Forwarded-Proto": {"https"}},
		RequestContext: events.APIGatewayProxyRequestContext{RequestID: "gateway-1", DomainName: "api.example.com",
			Stage: "dev"},
	}
	if change != nil {
		change(&e)
	}
	text, err := json.Marshal(e)
	if err != nil {
		panic(err)
	}
	return text
}

func request(t *testing.T, f *lambdatest.Function, event []byte) (*lambdatest.Answer, []byte) {
	t.Helper()
	answer, err := f.Request(t.Context(), event)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, body
}

func inBothModes(t *testing.T, test func(t *testing.T, f *lambdatest.Function)) {
	t.Run("buffered", func(t *testing.T) { test(t, start(t, "CUTROOM_RESPONSE=buffered")) })
	t.Run("streaming", func(t *testing.T) { test(t, start(t)) })
}

func TestRequestsReachHandler(t *testing.T) {
	inBothModes(t, func(t *testing.T, f *lambdatest.Function) {
		for _, c := range []struct {
			name, method, path string
			change             func(*events.APIGatewayProxyRequest)
			check              func(seen) bool
		}{
			{"method and path", "PATCH", "/v1/seen/a", nil, func(s seen) bool { return s.Method == "PATCH" && s.Path == "/v1/seen/a" }},
			{"below the base path of a domain", "GET", "/media/api/v1/seen/a", nil, func(s seen) bool { return s.Path == "/v1/seen/a" }},
			{"the path of a stage", "GET", "/v1/seen/a", func(e *events.APIGatewayProxyRequest) {
				e.RequestContext.Path = "/live/v1/seen/a"
				e.MultiValueHeaders["x-forwarded-prefix"] = []string{"/forged"}
			}, func(s seen) bool { return fmt.Sprint(s.Header["X-Forwarded-Prefix"]) == "[/live]" }},
			{"the path of an API in a local AWS", "GET", "/v1/seen/a", func(e *events.APIGatewayProxyRequest) {
				e.MultiValueHeaders["Host"] = []string{"127.0.0.1:4566"}
				e.RequestContext.Path, e.RequestContext.APIID, e.RequestContext.DomainName = "/live/v1/seen/a", "a1", ""
			}, func(s seen) bool {
				return s.Host == "127.0.0.1:4566" && s.Header.Get("X-Forwarded-Prefix") == "/restapis/a1/live/_user_request_"
			}},
			{"no path before it", "GET", "/v1/seen/a", func(e *events.APIGatewayProxyRequest) {
				e.RequestContext.Path = "/v1/seen/a"
				e.MultiValueHeaders["x-forwarded-prefix"] = []string{"/forged"}
			}, func(s seen) bool { return len(s.Header["X-Forwarded-Prefix"]) == 0 }},
			{"an escaped path", "GET", "/v1/seen/a%2Fb", nil, func(s seen) bool { return s.Path == "/v1/seen/a/b" }},
			{"query with repeated names", "GET", "/v1/seen/a", func(e *events.APIGatewayProxyRequest) {
				e.QueryStringParameters = map[string]string{"q": "2 & 3", "limit": "5"}
				e.MultiValueQueryStringParameters = map[string][]string{"q": {"1", "2 & 3"}, "limit": {"5"}}
			}, func(s seen) bool {
				return fmt.Sprint(s.Query["q"]) == "[1 2 & 3]" && fmt.Sprint(s.Query["limit"]) == "[5]"
			}},
			{"header with repeated names", "GET", "/v1/seen/a", func(e *events.APIGatewayProxyRequest) {
				e.Headers = map[string]string{"accept": "b"}
				e.MultiValueHeaders["accept"] = []string{"a", "b"}
			}, func(s seen) bool { return fmt.Sprint(s.Header["Accept"]) == "[a b]" }},
			{"host", "GET", "/v1/seen/a", nil, func(s seen) bool { return s.Host == "api.example.com" && s.Header.Get("Host") == "" }},
			{"no body", "POST", "/v1/seen/a", nil, func(s seen) bool { return s.Length == 0 && len(s.Body) == 0 }},
			{"a text body", "POST", "/v1/seen/a", func(e *events.APIGatewayProxyRequest) { e.Body = `{"é": 1}` },
				func(s seen) bool { return s.Length == 9 && string(s.Body) == `{"é": 1}` }},
			{"a binary body", "POST", "/v1/seen/a", func(e *events.APIGatewayProxyRequest) {
				e.Body, e.IsBase64Encoded = base64.StdEncoding.EncodeToString([]byte{0xff, 0, 'a', 1}), true
			}, func(s seen) bool { return s.Length == 4 && bytes.Equal(s.Body, []byte{0xff, 0, 'a', 1}) }},
			{"4 MiB of binary data", "POST", "/v1/seen/a", func(e *events.APIGatewayProxyRequest) {
				e.Body, e.IsBase64Encoded = base64.StdEncoding.EncodeToString(make([]byte, 4<<20)), true
			}, func(s seen) bool { return s.Length == 4<<20 && len(s.Body) == 4<<20 }},
			{"API Gateway's request id", "GET", "/v1/seen/a", nil, func(s seen) bool { return s.RequestID == "gateway-1" }},
			{"the client's request id", "GET", "/v1/seen/a", func(e *events.APIGatewayProxyRequest) {
				e.MultiValueHeaders["x-request-id"] = []string{"mine"}
			}, func(s seen) bool { return s.RequestID == "mine" }},
			{"the remaining time of the invocation", "GET", "/v1/seen/a", nil,
				func(s seen) bool { return s.Left > 0 && s.Left <= lambdatest.Timeout }},
		} {
			answer, body := request(t, f, event(c.method, "/v1/seen/{id}", c.path, c.change))
			var got seen
			if err := json.Unmarshal(body, &got); err != nil || answer.Status != 200 || !c.check(got) {
				got.Body = nil
				t.Errorf("%s: status %d, %v, the handler saw %+v", c.name, answer.Status, err, got)
			}
			if id := answer.Header.Get("x-request-id"); id != got.RequestID {
				t.Errorf("%s: the response has the request id %q, the handler %q", c.name, id, got.RequestID)
			}
		}
		answer, body := request(t, f, event("POST", "/v1/seen/{id}", "/v1/seen/a", func(e *events.APIGatewayProxyRequest) {
			e.Body, e.IsBase64Encoded = "no base64!", true
		}))
		if answer.Status != http.StatusUnprocessableEntity {
			t.Errorf("a body that cannot be decoded: %d %s", answer.Status, body)
		}
	})
}

func TestResponsesReachCaller(t *testing.T) {
	inBothModes(t, func(t *testing.T, f *lambdatest.Function) {
		for _, c := range []struct {
			name, method, path string
			status             int
			body               string
		}{
			{"bytes that are not text", "GET", "/v1/answer", 202, "\xff\x00\x01"},
			{"HEAD", "HEAD", "/v1/answer", 202, ""},
			{"a handler that writes nothing", "GET", "/v1/nothing", 200, ""},
			{"no content", "DELETE", "/v1/gone", 204, ""},
			{"a panic", "GET", "/v1/panic", 500, `{"detail":"Internal server error"}`},
			{"no route", "GET", "/v1/other", 404, "404 page not found\n"},
		} {
			answer, body := request(t, f, event(c.method, c.path, c.path, nil))
			if answer.Status != c.status || string(body) != c.body || answer.Header.Get("x-request-id") != "gateway-1" {
				t.Errorf("%s: %d %q with %v, want %d %q", c.name, answer.Status, body, answer.Header, c.status, c.body)
			}
			if c.path != "/v1/answer" {
				continue
			}
			for field, want := range map[string]string{
				"X-Two": "[a b]", "X-Late": "[]", "X-Declared": "[]", "X-Trailing": "[]", "Trailer:X-Trailing": "[]",
				"Trailer": "[]", "Connection": "[]",
			} {
				if got := fmt.Sprint(answer.Header[field]); got != want {
					t.Errorf("%s: the header's %s is %s, want %s", c.name, field, got, want)
				}
			}
		}
	})
}

func TestStreamIsSentAsItIsWritten(t *testing.T) {
	next := make(chan struct{})
	steps := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-next }))
	defer steps.Close()
	f := start(t)
	answer, err := f.Request(t.Context(), event("GET", "/v1/steps", "/v1/steps", func(e *events.APIGatewayProxyRequest) {
		e.MultiValueHeaders["X-Next"] = []string{steps.URL}
	}))
	// The header arrives before any of the body is written.
	if err != nil || answer.Status != 200 || !answer.Streamed {
		t.Fatalf("%+v, %v", answer, err)
	}
	defer answer.Body.Close()
	for _, want := range []string{"one", "two", "three"} {
		next <- struct{}{}
		got := make([]byte, len(want))
		if _, err := io.ReadFull(answer.Body, got); err != nil || string(got) != want {
			t.Fatalf("%q, %v, want %q", got, err, want)
		}
	}
	if rest, err := io.ReadAll(answer.Body); err != nil || len(rest) > 0 {
		t.Errorf("%q and %v after the end", rest, err)
	}
}

func TestStreamMayExceedBufferedLimit(t *testing.T) {
	_, body := request(t, start(t), event("GET", "/v1/large", "/v1/large", nil))
	if len(body) != 20<<20 {
		t.Errorf("%d bytes were streamed", len(body))
	}
	_, err := start(t, "CUTROOM_RESPONSE=buffered").Request(t.Context(), event("GET", "/v1/large", "/v1/large", nil))
	var failure *lambdatest.FunctionError
	if !errors.As(err, &failure) || failure.Type != "Function.ResponseSizeTooLarge" {
		t.Errorf("buffered: %v", err)
	}
}

// After an aborted response, the function's next request succeeds.
func TestAbortedResponseLooksIncomplete(t *testing.T) {
	var failure *lambdatest.FunctionError
	f := start(t)
	answer, err := f.Request(t.Context(), event("GET", "/v1/cut", "/v1/cut", nil))
	if err != nil {
		t.Fatal(err)
	}
	if body, err := io.ReadAll(answer.Body); string(body) != "half of it" || !errors.As(err, &failure) {
		t.Errorf("streaming: %q, %v", body, err)
	}
	if answer, _ := request(t, f, event("GET", "/v1/nothing", "/v1/nothing", nil)); answer.Status != 200 {
		t.Errorf("the next request: %d", answer.Status)
	}

	f = start(t, "AWS_SAM_LOCAL=true")
	if _, err := f.Request(t.Context(), event("GET", "/v1/cut", "/v1/cut", nil)); !errors.As(err, &failure) {
		t.Errorf("buffered: %v", err)
	}
	if answer, _ := request(t, f, event("GET", "/v1/nothing", "/v1/nothing", nil)); answer.Status != 200 ||
		answer.Streamed {
		t.Errorf("the next request: %d, streamed: %v", answer.Status, answer.Streamed)
	}
}

func TestLogHasIDsButNoSecrets(t *testing.T) {
	f := start(t)
	request(t, f, event("POST", "/v1/seen/{id}", "/v1/seen/hidden", func(e *events.APIGatewayProxyRequest) {
		e.MultiValueHeaders["x-api-key"] = []string{"hidden"}
		e.MultiValueHeaders["x-request-id"] = []string{"mine"}
		e.MultiValueQueryStringParameters = map[string][]string{"api_key": {"hidden"}}
		e.Body = "hidden"
	}))
	f.Kill()
	var line map[string]any
	if err := json.Unmarshal([]byte(f.Log()), &line); err != nil {
		t.Fatalf("%v: %s", err, f.Log())
	}
	for key, want := range map[string]any{
		"request_id": "mine", "gateway_request_id": "gateway-1", "lambda_request_id": "00000000-0000-4000-8000-000000000001",
		"account": "studio", "route": "/v1/seen/{id}", "status": 200.0,
	} {
		if line[key] != want {
			t.Errorf("%s is %v, want %v", key, line[key], want)
		}
	}
	if strings.Contains(f.Log(), "hidden") {
		t.Errorf("the log has a secret: %s", f.Log())
	}
}

func TestInvocationEndsItsHandler(t *testing.T) {
	ended := make(chan error, 1)
	invoke := lambdahttp.Stream(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, err := w.Write(make([]byte, 10<<20)) // more than any buffer holds
		ended <- errors.Join(err, r.Context().Err())
	}))
	answer, err := invoke(t.Context(),
		events.APIGatewayProxyRequest{HTTPMethod: "GET", Path: "/",
			RequestContext: events.APIGatewayProxyRequestContext{DomainName: "a"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := answer.Read(make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	if err := answer.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("the handler ended with %v", err)
		}
	default:
		t.Error("the handler has not returned")
	}
}

func TestPathBelowFindsResourcePath(t *testing.T) {
	for _, c := range []struct{ path, resource, want string }{
		{"/v1/jobs/a", "/v1/jobs/{id}", "/v1/jobs/a"},
		{"/v1/files/", "/v1/files", "/v1/files/"},
		{"/media/v1/jobs/a", "/v1/jobs/{id}", "/v1/jobs/a"},
		{"/media/v2/v1/files/", "/v1/files", "/v1/files/"},
		{"/media", "/", "/"},
		{"/media/", "/", "/"},
		{"/", "/", "/"},
		{"/v1/a/b/c", "/v1/{proxy+}", "/v1/a/b/c"},
		{"/v1/a", "", "/v1/a"},
		{"/v1", "/v1/jobs/{id}", "/v1"},
		{"", "/v1", ""},
	} {
		if got := lambdahttp.PathBelow(c.path, c.resource); got != c.want {
			t.Errorf("%q of %q: %q, want %q", c.path, c.resource, got, c.want)
		}
	}
}

func TestInvalidSettingPreventsStart(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	f, err := lambdatest.Start(t.Context(), lambdatest.Program(program), "CUTROOM_RESPONSE=whole")
	if err == nil {
		f.Kill()
		t.Fatal("it has started")
	}
	if !strings.Contains(err.Error(), `CUTROOM_RESPONSE: invalid value "whole"`) || strings.Count(err.Error(), "\n") > 1 {
		t.Errorf("the error is %v", err)
	}
}

// If Lambda does not trace an invocation, the function forwards the client's own trace.
func TestRequestContinuesTrace(t *testing.T) {
	const (
		segment = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled="
		lambda  = "00-5759e988bd862e3fe1be46a994272793-53995c3f42cd8ad8-0"
		client  = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	)
	for _, c := range []struct{ segment, header, want string }{
		{segment + "1", "", lambda + "1"},
		{segment + "1", client, lambda + "1"},
		{segment + "0", client, client},
		{segment + "0", "", lambda + "0"},
		{"", client, client},
		{"", "", ""},
	} {
		parents := make(chan string, 1)
		handler := httpserver.Handler(
			httpserver.Config{Logger: slog.New(slog.DiscardHandler),
				Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
					parents <- trace.Parent(r.Context())
				})})
		event := events.APIGatewayProxyRequest{HTTPMethod: "GET", Path: "/", Headers: map[string]string{}}
		if c.header != "" {
			event.Headers["traceparent"] = c.header
		}
		ctx := context.WithValue(t.Context(), "x-amzn-trace-id", c.segment) //nolint:staticcheck // as in aws-lambda-go
		answer, err := lambdahttp.Stream(handler)(ctx, event)
		if err != nil {
			t.Fatal(err)
		}
		if closer, ok := answer.Body.(io.Closer); ok {
			closer.Close()
		}
		if got := await.Receive(t, "parents", parents); got != c.want {
			t.Errorf("with %q and %q: %q, want %q", c.segment, c.header, got, c.want)
		}
	}
}
