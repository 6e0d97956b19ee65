package main_test

import (
	"bufio"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"cutroom/shared/testkit/servertest"
)

// secureServer is a model server with TLS that reports a request's protocol and key. A stream lasts until the client
// disconnects. The channel left then receives a value.
func secureServer(t *testing.T, http2 bool) (server *httptest.Server, left chan bool) {
	left = make(chan bool, 1)
	server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		said := fmt.Sprintf("%s, %s", r.Proto, r.Header.Get("Authorization"))
		if !strings.Contains(string(body), `"stream":true`) {
			fmt.Fprintf(w, `{"choices":[{"message":{"content":%q}}]}`, said)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%q}}]}\n\n", said)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		left <- true
	}))
	server.EnableHTTP2 = http2
	server.StartTLS()
	t.Cleanup(server.Close)
	return server, left
}

// A server with an untrusted certificate does not receive a request. This test needs Linux, where
// an environment variable can set the trusted certificates.
func TestUpstreamsUseTLS(t *testing.T) {
	t.Parallel()
	rows, lefts := "", map[string]chan bool{}
	var certificate []byte
	for name, http2 := range map[string]bool{"HTTP/2.0": true, "HTTP/1.1": false} {
		upstream, left := secureServer(t, http2)
		lefts[name] = left
		// All httptest servers use the same certificate, which is valid for 127.0.0.1.
		certificate = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: upstream.Certificate().Raw})
		rows += upstreamRow(name, upstream.URL, `, secret: "env:UPSTREAM_KEY"`)
		if http2 {
			rows += upstreamRow("stranger", strings.Replace(upstream.URL, "127.0.0.1", "localhost", 1),
				`, secret: "env:UPSTREAM_KEY"`)
		}
	}
	server := start(t, t.TempDir(), "CUTROOM_CATALOG="+save(t, append(defaultCatalog(t), rows...)),
		"SSL_CERT_FILE="+save(t, certificate), "UPSTREAM_KEY=sk-upstream")
	call := gatewayOf(server, servertest.Key)
	for name, left := range lefts {
		for _, size := range []int{10, 1 << 20} {
			answer, err := call(bounded(t), http.MethodPost, "/v1/chat/completions",
				fmt.Sprintf(`{"model":%q,"messages":[{"role":"user","content":%q}]}`, name, strings.Repeat("x", size)))
			if err != nil || answer.Status != 200 || !strings.Contains(string(answer.Body), name+", Bearer sk-upstream") {
				t.Errorf("%s, %d bytes: %v, %d %s", name, size, err, answer.Status, answer.Body)
			}
		}
		request, err := http.NewRequestWithContext(bounded(t), http.MethodPost, server.InferenceURL()+"/v1/chat/completions",
			strings.NewReader(fmt.Sprintf(`{"model":%q,"stream":true,"messages":[{"role":"user","content":"x"}]}`, name)))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+servertest.Key)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(response.Body).ReadString('\n')
		if err != nil || !strings.Contains(line, name+", Bearer sk-upstream") {
			t.Errorf("%s, a stream: %q, %v", name, line, err)
		}
		response.Body.Close()
		select {
		case <-left:
		case <-bounded(t).Done():
			t.Errorf("%s: the upstream did not notice that the client disconnected", name)
		}
	}
	answer, err := call(bounded(t), http.MethodPost, "/v1/chat/completions",
		`{"model":"stranger","messages":[{"role":"user","content":"x"}]}`)
	if err != nil || answer.Status != 502 || !strings.Contains(string(answer.Body), `"upstream_error"`) {
		t.Errorf("a stranger: %v, %d %s", err, answer.Status, answer.Body)
	}
	eventually(t, "the log says why", func() bool { return strings.Contains(server.Log(), "certificate") })
	if strings.Contains(server.Log(), "sk-upstream") {
		t.Errorf("the log contains the key: %s", server.Log())
	}
}
