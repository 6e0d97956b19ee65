package clitest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// losing is a proxy in front of a server. It passes on the first request to each path
// that creates something, and hangs up at once, so that the answer is lost while the
// request is still in progress.
type losing struct {
	server string
	mu     sync.Mutex
	lost   map[string]bool
	behind sync.WaitGroup
}

func (l *losing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	onward, err := http.NewRequest(r.Method, l.server+r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	onward.Header = r.Header.Clone()
	l.mu.Lock()
	lose := r.Method == http.MethodPost && r.URL.Path != "/v1/models/resolve" && !l.lost[r.URL.Path]
	if lose {
		l.lost[r.URL.Path] = true
	}
	l.mu.Unlock()
	if lose {
		l.behind.Go(func() {
			if answer, err := http.DefaultTransport.RoundTrip(onward); err == nil {
				answer.Body.Close()
			}
		})
		panic(http.ErrAbortHandler) // which closes the connection
	}
	answer, err := http.DefaultTransport.RoundTrip(onward)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer answer.Body.Close()
	for name, values := range answer.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(answer.StatusCode)
	_, _ = io.Copy(w, answer.Body) // the client may be gone
}

// A command whose connection breaks after its request was sent creates its job, file or
// token once.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	server := start(t)
	proxy := &losing{server: server.URL(), lost: map[string]bool{}}
	through := httptest.NewServer(proxy)
	defer proxy.behind.Wait()
	defer through.Close()
	s := at(t, through.URL, server.InferenceURL())
	s.save("look.png", picture(t))
	s.works("files", "put", "look.png")
	if id := s.works("edit", "look.png", "-p", "winter", "--detach"); !strings.HasPrefix(id, "job_") {
		t.Errorf("the job is %q", id)
	}
	if token := s.works("token"); !strings.HasPrefix(token, "ek_") {
		t.Errorf("the token is %q", token)
	}
	for _, path := range []string{"/v1/files", "/v1/client/tokens", "/v1/jobs/gen-image-2"} {
		if !proxy.lost[path] {
			t.Errorf("no answer of %s was lost, only of %v", path, proxy.lost)
		}
	}
	for _, of := range []string{"files", "jobs"} {
		var page map[string]json.RawMessage
		var entries []any
		answer, err := server.Client().Get(bounded(t), "/v1/"+of)
		if err != nil || json.Unmarshal(answer.Body, &page) != nil || json.Unmarshal(page[of], &entries) != nil ||
			len(entries) != 1 {
			t.Errorf("the %s are %s, %v", of, answer.Body, err)
		}
	}
}
