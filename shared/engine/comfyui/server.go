package comfyui

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"cutroom/shared/platform/boundedjson"
)

const (
	// maxAnswer limits a JSON response, in bytes. The node class of a loader lists every file that it can load.
	maxAnswer = 8 << 20
	// maxQueue limits the response with the queue, in bytes. The queue contains the workflows of all clients.
	maxQueue = 32 << 20
	// maxRuns limits the length of each list in the queue, because each poll decodes the lists.
	maxRuns = 10_000
	// maxValues limits the number of values in a JSON response. Some lists have one value per file.
	maxValues = 100_000
	// maxRefusal limits an error response, in bytes.
	maxRefusal = 1 << 20
	maxHeader  = 256 << 10
	dialTime   = 10 * time.Second
)

type server struct {
	base, key string
	silence   time.Duration
	client    *http.Client

	mu    sync.Mutex
	runs  int
	taken map[string]bool
	// stuck is the id of a cancelled run that is still running, or empty.
	stuck string
	// complete contains the workflows for which the server lacks nothing.
	complete map[*workflow]bool
}

func newServer(base, key string, silence time.Duration) *server {
	dialer := &net.Dialer{Timeout: dialTime}
	return &server{
		base: base, key: key, silence: silence, complete: map[*workflow]bool{}, taken: map[string]bool{},
		client: &http.Client{
			Transport: &http.Transport{
				Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext, TLSHandshakeTimeout: dialTime,
				MaxIdleConnsPerHost: 4, IdleConnTimeout: 30 * time.Second, MaxResponseHeaderBytes: maxHeader,
				DisableCompression: true,
			},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// statusError holds a status other than 200, and the part of the body that was read.
type statusError struct {
	status int
	body   []byte
}

func (e *statusError) Error() string { return fmt.Sprintf("the server returned status %d", e.status) }

func (s *server) header() http.Header {
	header := http.Header{}
	if s.key != "" {
		header.Set("Authorization", "Bearer "+s.key)
	}
	return header
}

// send sends a request. The caller must close the response's body. A status other than 200 is
// returned as a [*statusError].
func (s *server) send(ctx context.Context, method, path string, body io.Reader,
	contentType string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, s.base+path, body)
	if err != nil {
		return nil, err
	}
	request.Header = s.header()
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	response, err := s.client.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode == http.StatusOK {
		return response, nil
	}
	defer response.Body.Close()
	refused := &statusError{status: response.StatusCode}
	// Read only the bodies of errors. After a protocol switch, the body is a connection that the context cannot end.
	if refused.status >= http.StatusBadRequest {
		// A truncated body is harmless, because the status is enough.
		refused.body, _ = io.ReadAll(io.LimitReader(response.Body, maxRefusal))
	}
	return nil, refused
}

func (s *server) get(ctx context.Context, path string, into any) error {
	response, err := s.send(ctx, http.MethodGet, path, nil, "")
	if err != nil {
		return fmt.Errorf("GET %s: %w", path, err)
	}
	return decode(response, into)
}

func (s *server) post(ctx context.Context, path string, value, into any) error {
	body, err := json.Marshal(value)
	if err != nil {
		return err
	}
	response, err := s.send(ctx, http.MethodPost, path, bytes.NewReader(body), "application/json")
	if err != nil {
		return fmt.Errorf("POST %s: %w", path, err)
	}
	if into == nil {
		return response.Body.Close()
	}
	return decode(response, into)
}

type nonsenseError struct{ cause error }

func (e *nonsenseError) Error() string { return fmt.Sprintf("invalid response: %v", e.cause) }

func decode(response *http.Response, into any) error {
	body, err := read(response, maxAnswer)
	if err != nil {
		return err
	}
	if err := boundedjson.Unmarshal(body, maxValues, into); err != nil {
		return &nonsenseError{err}
	}
	return nil
}

func read(response *http.Response, most int64) ([]byte, error) {
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, most+1))
	if err != nil {
		return nil, fmt.Errorf("read the response: %w", err)
	}
	if int64(len(body)) > most {
		return nil, &nonsenseError{fmt.Errorf("the response has more than %d bytes", most)}
	}
	return body, nil
}

func isAbsent(err error) bool {
	var network *net.OpError
	return errors.As(err, &network) && network.Op == "dial"
}

type place int

const (
	nowhere place = iota
	pending
	running
)

func (s *server) find(ctx context.Context, id string) (place, error) {
	var queue struct {
		Running json.RawMessage `json:"queue_running"`
		Pending json.RawMessage `json:"queue_pending"`
	}
	response, err := s.send(ctx, http.MethodGet, "/queue", nil, "")
	if err != nil {
		return nowhere, fmt.Errorf("GET /queue: %w", err)
	}
	body, err := read(response, maxQueue)
	if err != nil {
		return nowhere, err
	}
	if err := json.Unmarshal(body, &queue); err != nil {
		return nowhere, &nonsenseError{err}
	}
	for _, list := range []struct {
		items json.RawMessage
		place place
	}{{queue.Running, running}, {queue.Pending, pending}} {
		found, err := hasRun(list.items, id)
		if err != nil {
			return nowhere, &nonsenseError{err}
		}
		if found {
			return list.place, nil
		}
	}
	return nowhere, nil
}

// hasRun decodes one item at a time, because many small items decoded at once would use a lot of memory.
func hasRun(list json.RawMessage, id string) (bool, error) {
	items := json.NewDecoder(bytes.NewReader(list))
	switch opening, err := items.Token(); {
	case errors.Is(err, io.EOF), err == nil && opening == nil: // the list is missing or null
		return false, nil
	case err != nil:
		return false, err
	case opening != json.Delim('['):
		return false, errors.New("the queue is not a list")
	}
	for n := 0; items.More(); n++ {
		if n == maxRuns {
			return false, fmt.Errorf("the queue has more than %d runs", maxRuns)
		}
		var item json.RawMessage
		if err := items.Decode(&item); err != nil {
			return false, err
		}
		if bytes.Contains(item, []byte(id)) && runOf(item) == id {
			return true, nil
		}
	}
	return false, nil
}

// runOf returns the id of the run in a queue item, or "". An item consists of a number, the run's
// id, and the workflow.
func runOf(item json.RawMessage) (id string) {
	parts := json.NewDecoder(bytes.NewReader(item))
	opening, err := parts.Token()
	var number json.RawMessage
	if err != nil || opening != json.Delim('[') || parts.Decode(&number) != nil || parts.Decode(&id) != nil {
		return ""
	}
	return id
}

type record struct {
	Outputs map[string]map[string]json.RawMessage `json:"outputs"`
	Status  *struct {
		Said string `json:"status_str"`
		// Each message is a pair of a name and its data.
		Messages [][]json.RawMessage `json:"messages"`
	} `json:"status"`
}

func (s *server) history(ctx context.Context, id string) (*record, error) {
	var records map[string]*record
	if err := s.get(ctx, "/history/"+url.PathEscape(id), &records); err != nil {
		return nil, err
	}
	return records[id], nil
}

// forget removes a run from the queue or interrupts it, and deletes its history. It reports whether
// the run has ended.
func (s *server) forget(ctx context.Context, id string) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), forgetTime)
	defer cancel()
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		where, err := s.find(ctx, id)
		switch {
		case isAbsent(err):
			return true
		case err != nil:
			return false
		case where == nowhere:
			_ = s.post(ctx, "/history", map[string]any{"delete": []string{id}}, nil) // there is nothing else to try
			return true
		case where == pending:
			_ = s.post(ctx, "/queue", map[string]any{"delete": []string{id}}, nil) // retried below
		case where == running:
			// Older versions interrupt whichever run is active, so check which run that is.
			_ = s.post(ctx, "/interrupt", map[string]any{"prompt_id": id}, nil) // retried below
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return false
		}
	}
}
