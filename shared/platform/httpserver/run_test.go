package httpserver_test

import (
	"bytes"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"cutroom/shared/platform/httpserver"
)

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

func TestRunStopsAllWhenOneFails(t *testing.T) {
	broken := surface(t, &bytes.Buffer{}, func(http.ResponseWriter, *http.Request) {})
	broken.Listener.Close()
	other := surface(t, &bytes.Buffer{}, func(http.ResponseWriter, *http.Request) {})
	stopped := false
	err := httpserver.Run(t.Context(), time.Minute, func() { stopped = true }, other, broken)
	if err == nil || !strings.HasPrefix(err.Error(), "serve: ") || !stopped {
		t.Errorf("got %v; stopping was called: %t", err, stopped)
	}
	if response, err := http.Get("http://" + other.Listener.Addr().String()); err == nil {
		response.Body.Close()
		t.Error("the other surface is still serving")
	}
}
