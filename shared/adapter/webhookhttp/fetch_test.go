package webhookhttp_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"cutroom/shared/adapter/webhookhttp"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/webhook"
)

// No URL, and no redirect, reaches a private address.
func TestFetcherReachesOnlyAllowedAddresses(t *testing.T) {
	var reached atomic.Int32
	private := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	defer private.Close()
	port := private.URL[strings.LastIndex(private.URL, ":"):]
	targets := []string{
		private.URL, "https://127.0.0.1" + port, "https://localhost" + port, "https://[::1]" + port, "https://[::ffff:127.0.0.1]" + port,
		"https://0.0.0.0" + port, "https://127.1" + port, "https://2130706433" + port, "https://0x7f.1" + port, "https://10.0.0.1",
		"https://169.254.169.254/latest/meta-data", "https://192.168.1.1", "https://172.16.0.1", "https://100.64.0.1",
		"https://[fd00:ec2::254]", "https://[fe80::1]", "https://168.63.129.16", "https://224.0.0.1", "https://metadata.internal",
		"http://example.com", "file:///etc/passwd", "gopher://example.com", "https://user:pass@example.com", "https://example.com:25",
		"https://rebind.test" + port, "https:", "https:///x", "//example.com", "data:text/plain;base64,YQ==",
	}
	to := ""
	open := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/":
			w.Header().Set("Location", to)
			w.WriteHeader(http.StatusFound)
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusMovedPermanently)
		case "/missing":
			w.WriteHeader(http.StatusNotFound)
		default:
			fmt.Fprint(w, "content", r.Header.Get("Referer"))
		}
	}))
	defer open.Close()
	known := x509.NewCertPool()
	known.AddCert(open.Certificate())
	// The name is allowed; it resolves to this machine.
	resolver := newResolver(t, func(int32) [4]byte { return [4]byte{127, 0, 0, 1} })
	listed, err := webhook.ParseTargets([]string{"files.test"})
	if err != nil {
		t.Fatal(err)
	}
	fetch := webhookhttp.NewFetcher(webhookhttp.Config{
		Resolver: resolver, Targets: listed, TLS: &tls.Config{RootCAs: known, ServerName: "example.com"},
	})
	base := "https://files.test" + open.URL[strings.LastIndex(open.URL, ":"):]
	for _, target := range targets {
		to = target
		for _, url := range []string{target, base} {
			file, err := fetch(t.Context(), url)
			if !fault.Is(err, fault.Invalid) {
				t.Errorf("%s to %s: %v", url, target, err)
			}
			if err == nil {
				file.Close()
			}
		}
	}
	for path, want := range map[string]string{"/loop": "more than 5 times", "/missing": "the status 404"} {
		if _, err := fetch(t.Context(), base+path); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
	to = base + "/file"
	file, err := fetch(t.Context(), base+"/?secret")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if text, err := io.ReadAll(file); err != nil || string(text) != "content" {
		t.Errorf("%q, %v", text, err)
	}
	if reached.Load() > 0 {
		t.Errorf("the private server got %d requests", reached.Load())
	}
}
