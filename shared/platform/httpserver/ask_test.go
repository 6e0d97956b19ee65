package httpserver_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"cutroom/shared/platform/httpserver"
)

func TestAskHealthReportsHealth(t *testing.T) {
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" {
			t.Errorf("%s is called", r.URL.Path)
		}
		w.WriteHeader(status)
	}))
	defer server.Close()
	// A proxy cannot reach this machine, so it must not be used.
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	address := strings.TrimPrefix(server.URL, "http://")
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	for _, asked := range []string{address, ":" + port, "0.0.0.0:" + port} {
		if err := httpserver.AskHealth(t.Context(), asked); err != nil {
			t.Errorf("%s: %v", asked, err)
		}
	}
	status = http.StatusServiceUnavailable
	if httpserver.AskHealth(t.Context(), address) == nil {
		t.Error("an unhealthy server is reported as healthy")
	}
	server.Close()
	for _, asked := range []string{address, "nowhere", ""} {
		if httpserver.AskHealth(t.Context(), asked) == nil {
			t.Errorf("%q is reported as healthy", asked)
		}
	}
}
