package httpserver_test

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"cutroom/shared/platform/httpserver"
	"cutroom/shared/testkit/patience"
)

// surface returns a surface on the loopback interface, which logs to the buffer.
func surface(t *testing.T, log *bytes.Buffer, handler http.HandlerFunc) httpserver.Surface {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	logger := slog.New(slog.NewTextHandler(log, nil))
	return httpserver.Surface{Server: httpserver.New(httpserver.Config{Logger: logger, Handler: handler}),
		Listener: listener}
}

func TestRunLetsRequestsFinish(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var log bytes.Buffer
	stopped := make(chan struct{})
	slow := surface(t, &log, func(w http.ResponseWriter, _ *http.Request) {
		stop()
		<-stopped
		w.WriteHeader(http.StatusTeapot)
	})
	other := surface(t, &bytes.Buffer{}, func(http.ResponseWriter, *http.Request) {})
	ended := make(chan error, 1)
	go func() { ended <- httpserver.Run(ctx, time.Minute, func() { close(stopped) }, slow, other) }()
	response, err := http.Get("http://" + slow.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusTeapot {
		t.Errorf("the request under way was answered with %d", response.StatusCode)
	}
	if err := patience.Receive(t, "ended", ended); err != nil {
		t.Error(err)
	}
	if strings.Contains(log.String(), "cut off") {
		t.Errorf("it logged %s", &log)
	}
}

func TestRunCutsOffWhatTakesTooLong(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var log bytes.Buffer
	endless := surface(t, &log, func(_ http.ResponseWriter, r *http.Request) {
		stop()
		<-r.Context().Done()
	})
	ended := make(chan error, 1)
	go func() { ended <- httpserver.Run(ctx, time.Millisecond, func() {}, endless) }()
	if response, err := http.Get("http://" + endless.Listener.Addr().String()); err == nil {
		response.Body.Close()
	}
	if err := patience.Receive(t, "ended", ended); err != nil {
		t.Error(err)
	}
	if !strings.Contains(log.String(), "cut off") {
		t.Errorf("it logged %s", &log)
	}
}

func TestRunEndsAllWhenOneFails(t *testing.T) {
	broken := surface(t, &bytes.Buffer{}, func(http.ResponseWriter, *http.Request) {})
	broken.Listener.Close()
	other := surface(t, &bytes.Buffer{}, func(http.ResponseWriter, *http.Request) {})
	stopped := false
	err := httpserver.Run(t.Context(), time.Minute, func() { stopped = true }, other, broken)
	if err == nil || !strings.HasPrefix(err.Error(), "serve: ") || !stopped {
		t.Errorf("it ended with %v; stopping was called: %t", err, stopped)
	}
	if response, err := http.Get("http://" + other.Listener.Addr().String()); err == nil {
		response.Body.Close()
		t.Error("the other surface still serves")
	}
}
