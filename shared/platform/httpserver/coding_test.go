package httpserver_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"cutroom/shared/platform/httpserver"
	"cutroom/shared/testkit/await"
)

func TestJSONIsCompressedForClientsThatAcceptIt(t *testing.T) {
	text := `{"a":"` + strings.Repeat("hello ", 1000) + `"}`
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content := text
		header := w.Header()
		header.Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/small":
			content = text[:1023]
		case "/huge":
			content = strings.Repeat(text, 200)
		case "/image":
			header.Set("Content-Type", "image/png")
		case "/download":
			header.Set("Content-Disposition", "attachment")
		case "/tagged":
			header.Set("ETag", `"x"`)
		case "/events":
			header.Set("Content-Type", "text/event-stream")
		}
		header.Set("Content-Length", strconv.Itoa(len(content)))
		if r.URL.Path == "/failed" {
			w.WriteHeader(http.StatusNotFound)
		}
		io.WriteString(w, content)
	})
	address, _ := start(t, httpserver.Config{Handler: handler})
	for _, c := range []struct {
		method, path, accept string
		compressed, varies   bool
	}{
		{"GET", "/", "br, GZIP;q=0.5", true, true}, {"GET", "/", "gzip", true, true}, {"HEAD", "/", "gzip", true, true},
		{"GET", "/failed", "gzip", true, true}, {"GET", "/", "", false, true}, {"GET", "/", "gzip;q=0.00, br", false, true},
		{"GET", "/small", "gzip", false, false}, {"GET", "/huge", "gzip", false, false}, {"GET", "/image", "gzip", false, false},
		{"GET", "/download", "gzip", false, false}, {"GET", "/tagged", "gzip", false, false}, {"GET", "/events", "gzip", false, false},
	} {
		request, _ := http.NewRequest(c.method, "http://"+address+c.path, nil)
		request.Header.Set("Accept-Encoding", c.accept) // the transport decodes only if the field is missing
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		compressed := response.Header.Get("Content-Encoding") == "gzip"
		if err != nil || compressed != c.compressed || strings.Contains(response.Header.Get("Vary"), "Accept-Encoding") != c.varies {
			t.Errorf("%v: %v, %v, %d bytes", c, err, response.Header, len(body))
		}
		if !compressed || c.method == "HEAD" {
			continue
		}
		reader, err := gzip.NewReader(strings.NewReader(string(body)))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(reader); err != nil || string(got) != text || response.ContentLength != int64(len(body)) {
			t.Errorf("%v: %v, %d bytes decoded, length %d", c, err, len(got), response.ContentLength)
		}
	}
	// API Gateway would need a compressed response in base64.
	recorder := httptest.NewRecorder()
	request := httptest.NewRequest(http.MethodGet, "/", nil)
	request.Header.Set("Accept-Encoding", "gzip")
	httpserver.Handler(httpserver.Config{Handler: handler, Logger: newLog().logger()}).ServeHTTP(recorder, request)
	if recorder.Body.String() != text {
		t.Errorf("a function's response: %v", recorder.Header())
	}
}

func TestResponsesDoNotWaitForCompression(t *testing.T) {
	text := `"` + strings.Repeat("hello ", 1000) + `"`
	var busy sync.WaitGroup
	for range 4 {
		busy.Go(func() {
			for large := make([]byte, 16<<20); t.Context().Err() == nil; {
				httpserver.Compress(large)
			}
		})
	}
	t.Cleanup(busy.Wait)
	address, _ := start(t, httpserver.Config{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(text)))
		io.WriteString(w, text)
	})})
	await.Until(t, "an uncompressed response", func() bool {
		response, err := http.Get("http://" + address)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, _ := io.ReadAll(response.Body)
		return !response.Uncompressed && string(body) == text
	})
}
