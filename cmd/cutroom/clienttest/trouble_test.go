package clienttest

import (
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"cutroom/shared/testkit/servertest"
)

// trouble is a faulty connection between a client and the server. It rejects the first upload for a second, loses the
// response to the first job, rejects the next job as too large, and cuts off the first event stream. It serves
// results from another host, whose first download breaks off.
type trouble struct {
	*httptest.Server
	media   *httputil.ReverseProxy
	storage *httptest.Server

	mu sync.Mutex
	// met counts the faults so far by name.
	met map[string]int
	// keys contains the Idempotency-Key of each attempt to submit the first job.
	keys []string
	// leaked reports whether the other host received a key.
	leaked bool
}

func newTrouble(t *testing.T, server *servertest.Server) *trouble {
	t.Helper()
	target, err := url.Parse(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	tr := &trouble{media: proxy(target), met: map[string]int{}}
	results := proxy(target)
	results.ModifyResponse = func(response *http.Response) error {
		if tr.first("cut download") {
			response.Body = &cut{response.Body, 500}
		}
		return nil
	}
	tr.storage = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tr.mu.Lock()
		tr.leaked = tr.leaked || r.Header.Get("x-api-key") != ""
		tr.mu.Unlock()
		r.Header.Set("x-api-key", servertest.Key)
		results.ServeHTTP(w, r)
	}))
	t.Cleanup(tr.storage.Close)
	tr.Server = httptest.NewServer(tr)
	t.Cleanup(tr.Close)
	return tr
}

func proxy(target *url.URL) *httputil.ReverseProxy {
	p := httputil.NewSingleHostReverseProxy(target)
	p.ErrorLog = log.New(io.Discard, "", 0)
	p.FlushInterval = -1
	return p
}

func (tr *trouble) first(name string) bool {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.met[name]++
	return tr.met[name] == 1
}

func (tr *trouble) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Path
	switch {
	case r.Method == http.MethodPost && path == "/v1/files" && tr.first("rejected upload"):
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
	case r.Method == http.MethodPost && strings.HasPrefix(path, "/v1/jobs/"):
		tr.job(w, r)
	case strings.HasSuffix(path, "/events") && tr.first("cut events"):
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "retry: 2000\n\nevent: job\ndata: {\"job_id\"")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	case strings.HasSuffix(path, "/content") && r.URL.RawQuery == "" && !strings.Contains(path, "job_none"):
		http.Redirect(w, r, tr.storage.URL+path, http.StatusTemporaryRedirect)
	default:
		tr.media.ServeHTTP(w, r)
	}
}

func (tr *trouble) job(w http.ResponseWriter, r *http.Request) {
	lost := tr.first("lost response")
	tr.mu.Lock()
	again := len(tr.keys) < 2
	if again {
		tr.keys = append(tr.keys, r.Header.Get("Idempotency-Key"))
	}
	tr.mu.Unlock()
	switch {
	case lost:
		tr.media.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	case !again && tr.first("too large"):
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusRequestEntityTooLarge)
	default:
		tr.media.ServeHTTP(w, r)
	}
}

func (tr *trouble) wasOvercome(t *testing.T) {
	t.Helper()
	tr.mu.Lock()
	defer tr.mu.Unlock()
	for _, name := range []string{"rejected upload", "lost response", "too large", "cut events", "cut download"} {
		if tr.met[name] < 2 {
			t.Errorf("%s: met %d times without a retry", name, tr.met[name])
		}
	}
	if len(tr.keys) < 2 || tr.keys[0] == "" || tr.keys[0] != tr.keys[1] {
		t.Errorf("the attempts for one job have the keys %q", tr.keys)
	}
	if tr.leaked {
		t.Error("a key was sent to another host")
	}
}

type cut struct {
	io.ReadCloser
	left int
}

func (c *cut) Read(p []byte) (int, error) {
	if c.left == 0 {
		return 0, errors.New("the network broke")
	}
	n, err := c.ReadCloser.Read(p[:min(len(p), c.left)])
	c.left -= n
	return n, err
}
