package lambdatest

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// maxBuffered is the maximum size of a response that is not streamed, in bytes (AWS Lambda quotas,
// "Invocation payload").
const maxBuffered = 6 << 20

// FunctionError is a failed invocation as Lambda reports it.
type FunctionError struct {
	Type    string `json:"errorType"`
	Message string `json:"errorMessage"`
}

func (e *FunctionError) Error() string { return e.Type + ": " + e.Message }

// runtimeAPI is the Lambda Runtime API of one function's process
// (docs.aws.amazon.com/lambda, "Using the Lambda runtime API").
type runtimeAPI struct {
	server   *http.Server
	listener net.Listener
	// events passes invocations to the process, one at a time.
	events chan *invocation
	polled chan struct{}
	once   sync.Once

	mu      sync.Mutex
	current map[string]*invocation
	number  int
}

type invocation struct {
	event    []byte
	deadline time.Time
	answered chan reply
	// read is closed once the response has been read or abandoned.
	read chan struct{}
}

// reply is the process's response to an event: an error, or a request whose body is the response.
type reply struct {
	request *http.Request
	failure *FunctionError
}

func newRuntimeAPI() (*runtimeAPI, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	api := &runtimeAPI{
		listener: listener, events: make(chan *invocation), polled: make(chan struct{}), current: map[string]*invocation{},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /2018-06-01/runtime/invocation/next", api.next)
	mux.HandleFunc("POST /2018-06-01/runtime/invocation/{id}/response", api.response)
	mux.HandleFunc("POST /2018-06-01/runtime/invocation/{id}/error", api.failed)
	api.server = &http.Server{Handler: mux}
	go func() { _ = api.server.Serve(listener) }() // ends when the server is closed
	return api, nil
}

func (api *runtimeAPI) address() string { return api.listener.Addr().String() }

func (api *runtimeAPI) close() { api.server.Close() }

// next waits for the next event and sends it.
func (api *runtimeAPI) next(w http.ResponseWriter, r *http.Request) {
	api.once.Do(func() { close(api.polled) })
	select {
	case <-r.Context().Done():
	case i := <-api.events:
		api.mu.Lock()
		api.number++
		id := fmt.Sprintf("00000000-0000-4000-8000-%012d", api.number)
		api.current[id] = i
		api.mu.Unlock()
		header := w.Header()
		header.Set("Lambda-Runtime-Aws-Request-Id", id)
		header.Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(i.deadline.UnixMilli(), 10))
		header.Set("Lambda-Runtime-Invoked-Function-Arn", "arn:aws:lambda:us-east-1:000000000000:function:test")
		header.Set("Lambda-Runtime-Trace-Id", "Root=1-00000000-000000000000000000000000;Sampled=0")
		header.Set("Content-Type", "application/json")
		_, _ = w.Write(i.event) // if the process has exited, Invoke notices
	}
}

// take removes and returns the invocation with the given id, or returns nil if it does not exist.
func (api *runtimeAPI) take(id string) *invocation {
	api.mu.Lock()
	defer api.mu.Unlock()
	i := api.current[id]
	delete(api.current, id)
	return i
}

// response accepts a response, which is read as it arrives.
func (api *runtimeAPI) response(w http.ResponseWriter, r *http.Request) {
	i := api.take(r.PathValue("id"))
	if i == nil {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	i.answered <- reply{request: r}
	select {
	case <-i.read:
		w.WriteHeader(http.StatusAccepted)
	case <-r.Context().Done():
	}
}

func (api *runtimeAPI) failed(w http.ResponseWriter, r *http.Request) {
	i := api.take(r.PathValue("id"))
	if i == nil {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	failure := &FunctionError{Type: "Unknown"}
	_ = json.NewDecoder(r.Body).Decode(failure) // unreadable fields stay empty
	i.answered <- reply{failure: failure}
	w.WriteHeader(http.StatusAccepted)
}

// invoke sends an event to the process and waits for the start of its response.
func (api *runtimeAPI) invoke(ctx context.Context, event []byte, timeout time.Duration,
	ended <-chan struct{}) (*invocation, reply, error) {
	i := &invocation{event: event, deadline: time.Now().Add(timeout), answered: make(chan reply, 1),
		read: make(chan struct{})}
	select {
	case api.events <- i:
	case <-ended:
		return nil, reply{}, errEnded
	case <-ctx.Done():
		return nil, reply{}, fmt.Errorf("the function does not accept events: %w", context.Cause(ctx))
	}
	select {
	case answer := <-i.answered:
		return i, answer, nil
	case <-ended:
		select {
		case answer := <-i.answered: // the process responded, then exited
			return i, answer, nil
		default:
			return nil, reply{}, errEnded
		}
	case <-ctx.Done():
		return nil, reply{}, fmt.Errorf("the function does not respond: %w", context.Cause(ctx))
	}
}

// content is a response body that is read as it arrives. Reading fails with a *FunctionError if the
// function reports a failure in the trailers.
type content struct {
	request *http.Request
	read    chan struct{}
	once    sync.Once
}

func (c *content) Read(p []byte) (int, error) {
	n, err := c.request.Body.Read(p)
	if err == io.EOF {
		if kind := c.request.Trailer.Get("Lambda-Runtime-Function-Error-Type"); kind != "" {
			failure := &FunctionError{Type: kind}
			text, _ := base64.StdEncoding.DecodeString(c.request.Trailer.Get("Lambda-Runtime-Function-Error-Body"))
			_ = json.Unmarshal(text, failure) // optional, because the type is known
			err = failure
		}
	}
	if err != nil {
		c.Close()
	}
	return n, err
}

// Close discards the rest of the body, so that the function can accept its next event.
func (c *content) Close() error {
	c.once.Do(func() { close(c.read) })
	return nil
}
