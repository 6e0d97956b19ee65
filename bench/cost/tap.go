package cost

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/app/awscost"
	"cutroom/shared/testkit/awstest"
)

// maxCall bounds the body of a call, in bytes.
const maxCall = 64 << 20

// tap is a proxy between programs and the local AWS that counts what their calls use.
// What DynamoDB would bill depends on the sizes of the records that a call reads or
// changes: the tap reads these before and after.
type tap struct {
	url, target string
	transport   *http.Transport
	// tables are the tables of the schema, by the names that they have here.
	tables map[string]dynamo.Table

	mu         sync.Mutex
	calls      map[string]float64
	quantities awscost.Quantities
	failure    error
}

// newTap starts a tap that ends with the test.
func (w *world) newTap() *tap {
	t := &tap{target: w.cloud.URL, transport: &http.Transport{}, tables: w.schema}
	t.reset()
	server := httptest.NewServer(http.HandlerFunc(t.serve))
	t.url = server.URL
	w.t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		t.transport.CloseIdleConnections()
	})
	return t
}

// reset resets the counts.
func (t *tap) reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.calls, t.quantities = map[string]float64{}, awscost.Quantities{}
}

// taken returns the calls and what they use. It fails if a call was not understood.
func (t *tap) taken() (map[string]float64, awscost.Quantities, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.calls), maps.Clone(t.quantities), t.failure
}

// count records a call.
func (t *tap) count(call string, quantities awscost.Quantities) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.calls[call]++
	t.quantities.Add(quantities, 1)
}

func (t *tap) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxCall))
	if err != nil {
		panic(http.ErrAbortHandler) // the client is gone
	}
	call := awstest.Operation(r)
	if operation, ok := strings.CutPrefix(call, "AmazonEC2ContainerServiceV20141113."); ok {
		call = "ECS." + operation
	}
	changes, err := t.changesOf(call, body)
	if err != nil {
		t.fail(call, err)
	}
	answer, content, err := t.forward(r, body)
	if err != nil {
		if r.Context().Err() == nil { // otherwise the client is gone
			t.fail(call, err)
		}
		panic(http.ErrAbortHandler)
	}
	quantities, err := t.quantitiesOf(call, body, content, changes)
	if err != nil {
		t.fail(call, err)
	}
	if quantities != nil {
		t.count(call, quantities)
	}
	maps.Copy(w.Header(), answer.Header)
	w.WriteHeader(answer.StatusCode)
	_, _ = w.Write(content) // the client may be gone
}

func (t *tap) fail(call string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failure = fmt.Errorf("%s: %w", call, err)
}

func (t *tap) forward(r *http.Request, body []byte) (*http.Response, []byte, error) {
	call, err := http.NewRequestWithContext(r.Context(), r.Method, t.target+r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	call.Header, call.Host = r.Header.Clone(), r.Host
	answer, err := t.transport.RoundTrip(call)
	if err != nil {
		return nil, nil, err
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	return answer, content, err
}

// quantitiesOf returns what a call uses. It returns nil for a call that is made
// periodically, with work or without: those are priced by the hour.
func (t *tap) quantitiesOf(call string, body, answer []byte, changes []change) (awscost.Quantities, error) {
	service, operation, _ := strings.Cut(call, ".")
	switch service {
	case "DynamoDB":
		return t.unitsOf(operation, body, answer, changes)
	case "SQS":
		var received struct{ Messages []any }
		if operation == "ReceiveMessage" && json.Unmarshal(answer, &received) == nil && len(received.Messages) == 0 {
			return nil, nil
		}
		// All calls are for the queues of the lanes, which are fair.
		return awscost.Quantities{awscost.QueueRequest: 1, awscost.FairQueueRequest: 1}, nil
	case "S3":
		switch operation {
		case http.MethodPut, http.MethodPost:
			return awscost.Quantities{awscost.BlobWrite: 1}, nil
		case http.MethodDelete:
			return awscost.Quantities{}, nil
		}
		return awscost.Quantities{awscost.BlobRead: 1}, nil
	case "secretsmanager":
		return awscost.Quantities{awscost.SecretRead: 1}, nil
	}
	// Calls of Step Functions and ECS are free; executions are billed by their
	// transitions.
	return awscost.Quantities{}, nil
}
