//go:build nginx

package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// Only `make bench` runs this test, because installing the nginx package starts a server on the machine.
func TestNginxServes(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "from the upstream") // fails if nginx has disconnected
	}))
	defer upstream.Close()
	nginx, err := startNginx(t.Context(), t.TempDir(), upstream.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer nginx.stop()
	answer, err := http.Get("http://" + nginx.address)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if text, err := io.ReadAll(answer.Body); err != nil || string(text) != "from the upstream" {
		t.Errorf("it returned %q, %v", text, err)
	}
}
