package gateway_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cutroom/shared/adapter/sqlite"
	"cutroom/shared/domain/audit"
	"cutroom/shared/domain/batch"
	"cutroom/shared/domain/blob"
	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/file"
	"cutroom/shared/domain/ratelimit"
	"cutroom/shared/domain/response"
	"cutroom/shared/platform/httpserver"
	"cutroom/shared/service/gateway"
	"cutroom/shared/service/gateway/upstream"
	"cutroom/shared/testkit/await"
	"cutroom/shared/testkit/programtest"
)

const (
	studio = "ck_studio_key_of_the_tests"
	rival  = "ck_rival_key_of_the_tests"
	third  = "ck_third_key_of_the_tests"
)

// All worlds share the key store, because creating a database takes longer than most tests. Tests
// may only add tokens to it.
var keys *sqlite.Keys

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) (code int) {
	folder, err := os.MkdirTemp("", "gateway-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(folder)
	db, err := sqlite.Open(context.Background(), filepath.Join(folder, "cutroom.db"), sqlite.Options{Now: time.Now})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer db.Close()
	keys = db.Keys()
	for account, secret := range map[string]string{"studio": studio, "rival": rival, "third": third} {
		key, err := credential.NewKey(secret, account, credential.DefaultTier, "", time.Now())
		if err == nil {
			err = keys.CreateKey(context.Background(), audit.Operator(key.CreatedAt), key)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return m.Run()
}

type setup struct {
	// rows is a YAML list of inference models, with URL0, URL1 and so on for the upstreams.
	rows                      string
	upstreams                 []*modelServer
	tier                      credential.Tier
	embedded                  http.Handler
	keepAlive, longestSilence time.Duration
	random                    func() float64
	origins                   httpserver.Origins
	stall                     time.Duration
	ready                     func(context.Context) error
	noTrailer                 bool
	secrets                   upstream.Secrets
	bodyWait                  time.Duration
	resolver                  upstream.Resolver
	budgets                   gateway.Budgets
	responses                 response.Store
	// listed is called for each read of a list of files. It may be nil.
	listed func(after string)
	// batches enables files and batches, but starts no runner.
	batches bool
	// socketBuffer is the size of the sockets' buffers on the caller side, in bytes. 0 means the default.
	socketBuffer int
}

// world is a gateway on a real port with real upstreams.
type world struct {
	// batches, stored and blobs are set if the world serves batches.
	batches  batch.Store
	stored   *file.Service
	blobs    blob.Store
	t        testing.TB
	url      string
	gateway  *gateway.Gateway
	server   *httpserver.Server
	meter    *meter
	observer *observer
	log      *programtest.Output
	counted  atomic.Int64 // bytes given to the tokenizer
	later    atomic.Int64 // how far the clock is ahead, in nanoseconds
	stopped  atomic.Pointer[time.Time]
	catalog  atomic.Pointer[catalog.Catalog]
	setup    setup
}

func (w *world) now() time.Time {
	now := time.Now()
	if at := w.stopped.Load(); at != nil {
		now = *at
	}
	return now.Add(time.Duration(w.later.Load()))
}

// stopClock stops the clock, because tests that depend on seconds would fail on a busy machine.
func (w *world) stopClock() {
	now := time.Now()
	w.stopped.Store(&now)
}

func (w *world) wait(d time.Duration) { w.later.Add(int64(d)) }

const oneRow = `
  - {id: small, routes: [chat, completions], context_length: 8192, max_output_length: 1000, upstreams: [{name: first, url: URL0, model: weights}]}
`

// longRow accepts the largest requests. On a busy machine, they take minutes to transfer.
const longRow = `
  - {id: small, routes: [chat, completions], context_length: 1048576, max_output_length: 1000, timeouts: {connect: 10m, idle: 1h}, upstreams: [{name: first, url: URL0, model: weights}]}
`

const media = `
limits: {video: {duration: 5m, width: 8, height: 8}, image: {pixels: 8}}
forms: {f: {fields: [{name: data, type: video}, {name: resolution, type: choice, values: [720p], default: 720p}]}}
models: [{id: media, kind: edit, form: f, fps: 20, sizes: {720p: 1280x720}}]
inference:
`

func newWorld(t testing.TB, s setup) *world {
	t.Helper()
	w := &world{t: t, meter: &meter{}, observer: &observer{}, log: &programtest.Output{}, setup: s}
	s.tier.Name = credential.DefaultTier
	if s.rows == "" {
		s.rows = oneRow
	}
	w.load(s.rows)
	if s.random == nil {
		s.random = rand.Float64
	}
	if s.secrets == nil {
		s.secrets = upstream.LocalSecrets{}
	}
	logger := slog.New(slog.NewJSONHandler(w.log, nil))
	w.gateway = gateway.New(gateway.Config{
		Catalog:       w.catalog.Load,
		Authenticator: credential.NewAuthenticator(keys, credential.Tiers{credential.DefaultTier: s.tier}, w.now),
		Spending: gateway.Spending{
			Limiter: ratelimit.New(w.now), Meter: w.meter, Usage: w.meter, Tokenizer: words{&w.counted}, Budgets: s.budgets,
		},
		Upstreams: gateway.Upstreams{Secrets: s.secrets, Embedded: s.embedded, Random: s.random, Resolver: s.resolver},
		Observer:  w.observer, Origins: s.origins, KeepAlive: s.keepAlive, LongestSilence: s.longestSilence, Trailers: !s.noTrailer,
		Ready: s.ready, Batches: w.files(), BodyWait: s.bodyWait, Responses: s.responses,
		Now: w.now, Logger: logger,
	}, gateway.Models, gateway.FilesAndBatches)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	w.server = httpserver.New(httpserver.Config{Handler: w.gateway, Logger: logger,
		OnPanic: gateway.PanicHandler(s.origins), Stall: s.stall, Loop: os.Getenv("CUTROOM_NET_HTTP") == ""})
	served := make(chan error, 1)
	go func() { served <- w.server.Serve(narrow{listener, s.socketBuffer}) }()
	t.Cleanup(func() {
		w.stop()
		must(t, await.Receive(t, "served", served))
		w.gateway.Close()
		if strings.Contains(w.log.String(), "panic") {
			t.Errorf("a handler panicked: %s", w.log)
		}
	})
	w.url = "http://" + listener.Addr().String()
	return w
}

type narrow struct {
	net.Listener
	buffer int
}

func (n narrow) Accept() (net.Conn, error) {
	conn, err := n.Listener.Accept()
	if err == nil && n.buffer > 0 {
		err = conn.(*net.TCPConn).SetWriteBuffer(n.buffer)
	}
	return conn, err
}

func (w *world) stop() {
	ended, end := context.WithCancel(context.Background())
	end()
	w.server.Shutdown(ended)
}

func (w *world) load(rows string) {
	w.t.Helper()
	for i, u := range w.setup.upstreams {
		rows = strings.ReplaceAll(rows, fmt.Sprint("URL", i), `"`+u.url+`"`)
	}
	rows = strings.ReplaceAll(rows, "URL0", `"http://127.0.0.1:1/v1"`)
	known, err := catalog.Parse([]byte(media+rows), "gen")
	must(w.t, err)
	w.catalog.Store(known)
}

type answer struct {
	status  int
	header  http.Header
	body    string
	trailer http.Header
	err     error
}

// request creates a request. Header fields have the form "Name: value".
func (w *world) request(ctx context.Context, method, path, key string, body io.Reader, fields ...string) *http.Request {
	w.t.Helper()
	request, err := http.NewRequestWithContext(ctx, method, w.url+path, body)
	must(w.t, err)
	if key != "" {
		request.Header.Set("Authorization", "Bearer "+key)
	}
	for _, field := range fields {
		name, value, _ := strings.Cut(field, ": ")
		request.Header.Set(name, value)
	}
	return request
}

func (w *world) do(request *http.Request) answer {
	w.t.Helper()
	response, err := client.Do(request)
	if err != nil {
		return answer{err: err}
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, response.Header, string(body), response.Trailer, err}
}

// start posts a request. started receives a value when the response's header arrives.
func (w *world) start(path, body string) (got <-chan answer, started <-chan bool) {
	w.t.Helper()
	request := w.request(w.t.Context(), http.MethodPost, path, studio, strings.NewReader(body))
	answers, begun := make(chan answer, 1), make(chan bool, 1)
	go func() {
		response, err := client.Do(request)
		if err != nil {
			answers <- answer{err: err}
			return
		}
		begun <- true
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		answers <- answer{response.StatusCode, response.Header, string(text), response.Trailer, err}
	}()
	return answers, begun
}

func (w *world) get(path, key string, fields ...string) answer {
	w.t.Helper()
	return w.do(w.request(w.t.Context(), http.MethodGet, path, key, nil, fields...))
}

func (w *world) chat(body string, fields ...string) answer {
	w.t.Helper()
	return w.do(w.request(w.t.Context(), http.MethodPost, "/v1/chat/completions", studio, strings.NewReader(body),
		fields...))
}

func (w *world) complete(body string) answer {
	w.t.Helper()
	return w.do(w.request(w.t.Context(), http.MethodPost, "/v1/completions", studio, strings.NewReader(body)))
}

func (w *world) open(ctx context.Context, body string) *http.Response {
	w.t.Helper()
	response, err := client.Do(w.request(ctx, http.MethodPost, "/v1/chat/completions", studio, strings.NewReader(body)))
	must(w.t, err)
	w.t.Cleanup(func() { response.Body.Close() })
	return response
}

var client = &http.Client{Transport: &http.Transport{DisableCompression: true}, Timeout: await.Max}

const (
	plain    = `{"model":"small","messages":[{"role":"user","content":"one two"}]}`
	streamed = `{"model":"small","stream":true,"messages":[{"role":"user","content":"one two"}]}`
	asking   = `{"model":"small","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user",` +
		`"content":"one two"}]}`
)

type modelServer struct {
	url      string
	listener net.Listener

	mu       sync.Mutex
	requests []received
	answer   func(c *call)
	gone     sync.WaitGroup
}

type received struct {
	method, path, host, body string
	header                   http.Header
}

type call struct {
	net.Conn
	received
	// left is closed when the gateway closes the connection.
	left <-chan struct{}
}

// newUpstream starts a model server. Each connection serves one request.
func newUpstream(t *testing.T, answer func(c *call)) *modelServer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	return serveModels(t, listener, answer)
}

func serveModels(t *testing.T, listener net.Listener, answer func(c *call)) *modelServer {
	u := &modelServer{url: "http://" + listener.Addr().String() + "/v1", listener: listener, answer: answer}
	u.gone.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			u.gone.Go(func() { u.serve(conn) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		u.gone.Wait()
	})
	return u
}

func (u *modelServer) serve(conn net.Conn) {
	defer conn.Close()
	reader := bufio.NewReader(conn)
	request, err := http.ReadRequest(reader)
	if err != nil {
		return
	}
	// Allocate megabytes at once, because the race detector makes allocations slow.
	var body strings.Builder
	body.Grow(int(max(0, request.ContentLength)))
	if _, err := io.Copy(&body, request.Body); err != nil {
		return
	}
	left := make(chan struct{})
	u.gone.Go(func() {
		// Reading ends when either side closes the connection.
		_, _ = io.Copy(io.Discard, reader)
		close(left)
	})
	c := &call{conn, received{request.Method, request.URL.Path, request.Host, body.String(), request.Header}, left}
	u.mu.Lock()
	u.requests = append(u.requests, c.received)
	answer := u.answer
	u.mu.Unlock()
	answer(c)
}

func (u *modelServer) seen() []received {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.requests)
}

func (u *modelServer) now(answer func(c *call)) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.answer = answer
}

func (c *call) json(status int, body string, fields ...string) {
	fmt.Fprintf(c, "HTTP/1.1 %d x\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n",
		status, len(body))
	for _, field := range fields {
		fmt.Fprintf(c, "%s\r\n", field)
	}
	fmt.Fprintf(c, "\r\n%s", body)
}

func (c *call) stream() {
	fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
}

// write sends a piece of a stream as one transport chunk.
func (c *call) write(text string) error {
	_, err := fmt.Fprintf(c, "%x\r\n%s\r\n", len(text), text)
	return err
}

func (c *call) end() { fmt.Fprint(c, "0\r\n\r\n") }

func (c *call) reset() {
	c.Conn.(*net.TCPConn).SetLinger(0)
	c.Close()
}

func events(data ...string) func(*call) {
	return func(c *call) {
		c.stream()
		for _, d := range data {
			c.write("data: " + d + "\n\n")
		}
		c.end()
	}
}

func always(status int, body string, fields ...string) func(*call) {
	return func(c *call) { c.json(status, body, fields...) }
}

func chunk(content string) string {
	return fmt.Sprintf(`{"id":"c1","object":"chat.completion.chunk","created":7,"model":"weights","choices":[{"index":0,`+
		`"delta":{"content":%q},"finish_reason":null}]}`, content)
}

const (
	last = `{"id":"c1","object":"chat.completion.chunk","created":7,"model":"weights","choices":[{"index":0,"delta":{},` +
		`"finish_reason":"stop"}]}`
	used = `{"id":"c1","object":"chat.completion.chunk","created":7,"model":"weights","choices":[],` +
		`"usage":{"prompt_tokens":11,"completion_tokens":5,"total_tokens":16}}`
	done  = "[DONE]"
	whole = `{"id":"c1","object":"chat.completion","created":7,"model":"weights","choices":[{"index":0,` +
		`"message":{"role":"assistant","content":"hello there"},"finish_reason":"stop"}],"usage":{"prompt_tokens":11,` +
		`"completion_tokens":5,"total_tokens":16,"prompt_tokens_details":{"cached_tokens":3},` +
		`"completion_tokens_details":{"reasoning_tokens":2}}}`
)

func asSmall(text string) string {
	return strings.ReplaceAll(text, `"model":"weights"`, `"model":"small"`)
}

func eventStream(data ...string) string {
	var b strings.Builder
	for _, d := range data {
		b.WriteString("data: " + d + "\n\n")
	}
	return b.String()
}

func (w *world) eventually(what string, so func() bool) {
	w.t.Helper()
	await.Until(w.t, what, so)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
