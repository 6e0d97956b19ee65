package httpserver_test

import (
	"io"
	"net/http"
	"testing"

	"cutroom/shared/platform/httpserver"
)

func TestBaseURLMayEndWithSlash(t *testing.T) {
	address, _ := start(t, httpserver.Config{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, r.Method+" "+r.URL.Path+" "+r.URL.EscapedPath()+" "+r.URL.RawQuery)
	})})
	for sent, want := range map[string]string{
		"//v1/files?a=//v1//b":     "/v1/files /v1/files a=//v1//b",
		"/v1//files":               "/v1/files /v1/files ",
		"///v1///chat/completions": "/v1/chat/completions /v1/chat/completions ",
		"//healthz":                "/healthz /healthz ",
		"//":                       "/ / ",
		"//v1/models/org%2Fbig":    "/v1/models/org/big /v1/models/org%2Fbig ",
		"//example.com/..//evil":   "/example.com/..//evil /example.com/..//evil ",
		"/v1/files//content":       "/v1/files//content /v1/files//content ",
		"/v1/files/":               "/v1/files/ /v1/files/ ",
		"/v2//files":               "/v2//files /v2//files ",
		"/v1/../v1//files":         "/v1/../v1//files /v1/../v1//files ",
	} {
		request, err := http.NewRequest(http.MethodPost, "http://"+address, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.URL.Opaque = "//" + address + sent
		response, err := http.DefaultTransport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || response.StatusCode != 200 || string(body) != "POST "+want {
			t.Errorf("%s: got %d %q (%v), want %q", sent, response.StatusCode, body, err, want)
		}
	}
}
