package engineserver_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/engine"
	"cutroom/shared/engine/engineserver"
	"cutroom/shared/engine/engineserver/engineservertest"
	"cutroom/shared/testkit/await"
)

type gated struct {
	begun  chan string // receives the name of each server that starts a run
	name   string
	finish chan struct{}
}

func (g gated) Run(ctx context.Context, spec engine.Spec, _ func(engine.Progress)) (engine.Outcome, error) {
	g.begun <- g.name
	select {
	case <-g.finish:
		return engine.Outcome{}, os.WriteFile(spec.Output, []byte(video), 0o600)
	case <-ctx.Done():
		return engine.Outcome{}, ctx.Err()
	}
}

type pool struct {
	*engineserver.Pool
	t       *testing.T
	begun   chan string
	finish  map[string]chan struct{}
	servers map[string]*httptest.Server
	runs    sync.WaitGroup
}

func newPool(t *testing.T, names ...string) *pool {
	t.Helper()
	p := &pool{t: t, begun: make(chan string), finish: map[string]chan struct{}{}, servers: map[string]*httptest.Server{}}
	var configs []engineserver.Config
	for _, name := range names {
		p.finish[name] = make(chan struct{})
		server := httptest.NewServer(engineservertest.Handler(gated{p.begun, name, p.finish[name]}))
		t.Cleanup(server.Close)
		p.servers[name] = server
		configs = append(configs, engineserver.Config{URL: server.URL, Starting: shortSilence})
	}
	var err error
	if p.Pool, err = engineserver.NewPool(configs...); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *pool) run() string {
	p.t.Helper()
	spec := newSpec(p.t)
	p.runs.Go(func() {
		if _, err := p.Run(p.t.Context(), spec, func(engine.Progress) {}); err != nil {
			p.t.Errorf("a run failed: %v", err)
		}
	})
	return await.Receive(p.t, "p.begun", p.begun)
}

// The next run goes to the first server that becomes free.
func TestPoolDistributesRuns(t *testing.T) {
	p := newPool(t, "a", "b", "c")
	first := map[string]bool{p.run(): true, p.run(): true, p.run(): true}
	if len(first) != 3 {
		t.Fatalf("three runs went to %v", first)
	}
	p.finish["b"] <- struct{}{}
	// The run has ended on its server, but the pool has not noticed yet.
	waiting := p.run()
	for waiting != "b" {
		p.finish[waiting] <- struct{}{}
		waiting = p.run()
	}
	for _, name := range []string{"a", "b", "c"} {
		close(p.finish[name])
	}
	p.runs.Wait()
}

func TestAnotherEngineMakesVideosFromImages(t *testing.T) {
	p, began, finish := newPool(t, "a"), make(chan string, 1), make(chan struct{})
	close(finish)
	p.WithImageToVideo(gated{began, "still", finish})
	spec := newSpec(t)
	spec.Kind = catalog.ImageToVideo
	outcome, err := p.Run(t.Context(), spec, func(engine.Progress) {})
	if err != nil || !outcome.Untrained {
		t.Fatalf("%+v, %v", outcome, err)
	}
	if name := await.Receive(t, "began", began); name != "still" || !p.Capabilities().ImageToVideo {
		t.Errorf("the run went to %s", name)
	}
}

func TestPoolPrefersServersWithTheModelInMemory(t *testing.T) {
	p := newPool(t, "a", "b")
	warm := p.servers["b"].Config.Handler
	p.servers["b"].Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/healthz" {
			_, _ = w.Write([]byte(`{"status":"ok","loaded":["other","gen-2.5"]}`))
			return
		}
		warm.ServeHTTP(w, r)
	})
	if first, second := p.run(), p.run(); first != "b" || second != "a" {
		t.Errorf("the runs went to %s and %s, want b, and then a, which has fewer runs", first, second)
	}
	for _, finish := range p.finish {
		close(finish)
	}
	p.runs.Wait()
}

// A server is used again after it recovers.
func TestPoolAvoidsServersThatAreDown(t *testing.T) {
	down := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" {
			t.Error("a server that accepts no runs got one")
		}
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer down.Close()
	up := scripted(t, 200, wrote, closes)
	p, err := engineserver.NewPool(engineserver.Config{URL: down.URL}, engineserver.Config{URL: up})
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		spec := newSpec(t)
		if err := os.WriteFile(spec.Output, []byte(video), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Run(t.Context(), spec, func(engine.Progress) {}); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Health(t.Context()); err != nil {
		t.Errorf("a pool with one server up: %v", err)
	}
}

func TestPoolWaitsIfNoServerIsUp(t *testing.T) {
	p := newPool(t, "a", "b")
	for _, server := range p.servers {
		server.Close()
	}
	var failure *engine.Error
	if _, err := p.Run(t.Context(), newSpec(t), func(engine.Progress) {}); !errors.As(err, &failure) || !failure.Retryable ||
		failure.Message != "The engine cannot be reached." {
		t.Errorf("got %v", err)
	}
	if err := p.Health(t.Context()); err == nil || strings.Count(err.Error(), "connection refused") != 2 {
		t.Errorf("the health is %v", err)
	}
}

func TestInvalidPoolsAreRejected(t *testing.T) {
	for want, urls := range map[string][]string{
		"no server":       {},
		"not an http URL": {"http://127.0.0.1:8090", "gpu-1"},
		"twice":           {"http://127.0.0.1:8090", "http://127.0.0.1:8090/"},
	} {
		var configs []engineserver.Config
		for _, url := range urls {
			configs = append(configs, engineserver.Config{URL: url})
		}
		if _, err := engineserver.NewPool(configs...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q returned %v", urls, err)
		}
	}
}
