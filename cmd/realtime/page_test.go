package main_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// The page calls the media API at another address.
func TestPageIsServedWithSessions(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1)
	get := func(i *instance) (*http.Response, string) {
		answer, err := http.Get("http://" + i.address + "/realtime")
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer, string(body)
	}
	if answer, _ := get(f.start()); answer.StatusCode != http.StatusNotFound {
		t.Errorf("without a media API: %d, want 404", answer.StatusCode)
	}
	f.settings = append(f.settings, "CUTROOM_PUBLIC_URL=https://media.example/v1/")
	answer, body := get(f.start())
	if answer.StatusCode != http.StatusOK || !strings.Contains(body, `"service":"https://media.example/v1"`) ||
		!strings.Contains(answer.Header.Get("Content-Security-Policy"), "; connect-src 'self' https://media.example;") {
		t.Errorf("%d, %v", answer.StatusCode, answer.Header)
	}
}
