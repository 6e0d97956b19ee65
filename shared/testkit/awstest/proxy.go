package awstest

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// Faults holds the fraction of calls, from 0 to 1, that each fault affects. The sum is at most 1.
type Faults struct {
	// Throttled calls get a throttling error.
	Throttled float64
	// Failed calls get an internal error and have no effect.
	Failed float64
	// LostCalls lose their connection before taking effect. LostAnswers take effect, but lose the
	// connection before the response.
	LostCalls, LostAnswers float64
	// Silent calls have an effect but get no response, so the client gives up.
	Silent float64
	// Slow calls get a late response.
	Slow float64
}

const slowBy = 200 * time.Millisecond

const maxCall = 64 << 20

// Proxy forwards calls between clients and the local AWS. It counts the calls as sent over the
// network and injects faults.
type Proxy struct {
	URL string

	target    string
	transport *http.Transport
	// over is closed when the proxy stops, so that silent calls end.
	over chan struct{}

	mu     sync.Mutex
	random *rand.Rand
	faults Faults
	calls  map[string]int
	met    map[string]int
	// guard, if not nil, checks the calls. known holds the rejections that Rejected has returned.
	guard *guarding
	known []string
}

// Proxy starts a proxy that is stopped when the test ends. The faults depend on the seed and on the
// order of the calls.
func (c *Cloud) Proxy(t T, seed uint64, faults Faults) *Proxy {
	t.Helper()
	return NewProxy(t, c.URL, seed, faults)
}

// NewProxy starts a proxy to a server that stands in for the local AWS.
func NewProxy(t T, target string, seed uint64, faults Faults) *Proxy {
	t.Helper()
	p := &Proxy{
		target: target, transport: &http.Transport{}, over: make(chan struct{}),
		random: rand.New(rand.NewPCG(seed, seed)), faults: faults, calls: map[string]int{}, met: map[string]int{},
	}
	server := httptest.NewServer(http.HandlerFunc(p.serve))
	p.URL = server.URL
	t.Cleanup(func() {
		close(p.over)
		server.CloseClientConnections()
		server.Close()
		p.transport.CloseIdleConnections()
	})
	return p
}

// To sends subsequent calls to another address.
func (p *Proxy) To(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = target
}

// Config returns a configuration for clients that call through the proxy. They wait for responses
// without a timeout, unless the proxy's faults include silent calls.
func (p *Proxy) Config() aws.Config {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.faults.Silent > 0 {
		return ConfigFor(p.URL)
	}
	return patient(ConfigFor(p.URL))
}

func (p *Proxy) SetFaults(faults Faults) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = faults
}

// Calls returns how often each operation, such as "DynamoDB.UpdateItem", was called, and resets the counts.
func (p *Proxy) Calls() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	calls := p.calls
	p.calls = map[string]int{}
	return calls
}

// Met returns how many calls each fault affected.
func (p *Proxy) Met() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.met)
}

const (
	throttled  = "throttled"
	failed     = "failed"
	lostCall   = "lost call"
	lostAnswer = "lost answer"
	silent     = "silent"
	slow       = "slow"
)

// meet counts a call and chooses its fault, or "" for none.
func (p *Proxy) meet(operation string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls[operation]++
	draw := p.random.Float64()
	for _, trouble := range []struct {
		name string
		part float64
	}{
		{throttled, p.faults.Throttled}, {failed, p.faults.Failed}, {lostCall, p.faults.LostCalls},
		{lostAnswer, p.faults.LostAnswers}, {silent, p.faults.Silent}, {slow, p.faults.Slow},
	} {
		if draw -= trouble.part; draw < 0 {
			p.met[trouble.name]++
			return trouble.name
		}
	}
	return ""
}

func (p *Proxy) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxCall))
	if err != nil {
		panic(http.ErrAbortHandler) // the client has disconnected
	}
	guard := p.guarded()
	if guard != nil {
		if reason := guard.rejects(r, body); reason != "" {
			deny(w, r, reason)
			return
		}
	}
	trouble := p.meet(Operation(r))
	switch trouble {
	case throttled:
		reject(w, r, http.StatusBadRequest, "ThrottlingException", "SlowDown")
		return
	case failed:
		reject(w, r, http.StatusInternalServerError, "InternalServerError", "InternalError")
		return
	case lostCall:
		panic(http.ErrAbortHandler) // closes the connection without a response
	}
	answer, content, err := p.forward(r, body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if guard != nil {
		if reason := guard.hides(r, answer.StatusCode); reason != "" {
			deny(w, r, reason)
			return
		}
	}
	switch trouble {
	case lostAnswer:
		panic(http.ErrAbortHandler)
	case silent:
		select {
		case <-r.Context().Done():
		case <-p.over:
		}
		panic(http.ErrAbortHandler)
	case slow:
		timer := time.NewTimer(slowBy)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-r.Context().Done():
		}
	}
	maps.Copy(w.Header(), answer.Header)
	w.WriteHeader(answer.StatusCode)
	_, _ = w.Write(content) // the client may have disconnected
}

// forward makes the call. Like AWS, it continues if the client disconnects.
func (p *Proxy) forward(r *http.Request, body []byte) (*http.Response, []byte, error) {
	p.mu.Lock()
	target := p.target
	p.mu.Unlock()
	call, err := http.NewRequest(r.Method, target+r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	call.Header = r.Header.Clone()
	call.Host = r.Host
	answer, err := p.transport.RoundTrip(call)
	if err != nil {
		return nil, nil, err
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	return answer, content, err
}

// Operation returns a call's operation. For JSON services, it is in a header. For S3, it is the method.
func Operation(r *http.Request) string {
	service, name, ok := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	if !ok {
		return "S3." + r.Method
	}
	service, _, _ = strings.Cut(service, "_") // removes the version
	switch service {
	case "AWSStepFunctions":
		service = "StepFunctions"
	case "AmazonSQS":
		service = "SQS"
	}
	return service + "." + name
}

// reject responds with an AWS error in the service's format.
func reject(w http.ResponseWriter, r *http.Request, status int, code, s3Code string) {
	if r.Header.Get("X-Amz-Target") == "" {
		if status < 500 {
			status = http.StatusServiceUnavailable
		}
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(status)
		fmt.Fprintf(w, "<Error><Code>%s</Code><Message>A test.</Message></Error>", s3Code)
		return
	}
	w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"__type": %q, "message": "A test."}`, code)
}
