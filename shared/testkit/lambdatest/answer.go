package lambdatest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

const streamType = "application/vnd.awslambda.http-integration-response"

// delimiter separates a streamed response's metadata from its body (API Gateway, "Lambda proxy
// integration format for response streaming").
var delimiter = make([]byte, 8)

// Answer is a response through API Gateway, as a client sees it.
type Answer struct {
	Streamed bool
	Status   int
	Header   http.Header
	// Body is read as it arrives. Reading fails with a *FunctionError if the function failed midway.
	Body io.ReadCloser
}

// Invoke invokes a function that responds with JSON and returns its response.
//
// Errors: *FunctionError; the process exited; the context's error.
func (f *Function) Invoke(ctx context.Context, event []byte) ([]byte, error) {
	_, body, err := f.begin(ctx, event)
	if err != nil {
		return nil, err
	}
	return readBuffered(body)
}

// Request invokes a function with an API Gateway event and returns its response, of which only the
// start may have arrived. The caller must close the body.
//
// Errors: Invoke's errors; API Gateway would reject the response.
func (f *Function) Request(ctx context.Context, event []byte) (*Answer, error) {
	kind, body, err := f.begin(ctx, event)
	if err != nil {
		return nil, err
	}
	if kind == streamType {
		return readStreamed(body)
	}
	text, err := readBuffered(body)
	if err != nil {
		return nil, err
	}
	return ReadAnswer(text)
}

// ReadAnswer parses a function's buffered response to an API Gateway event.
//
// Errors: API Gateway would reject the response.
func ReadAnswer(text []byte) (*Answer, error) {
	var sent struct {
		StatusCode        int
		Headers           map[string]string
		MultiValueHeaders map[string][]string
		Body              string
		IsBase64Encoded   bool
	}
	if err := json.Unmarshal(text, &sent); err != nil || sent.StatusCode < 200 || sent.StatusCode > 599 {
		return nil, fmt.Errorf("malformed proxy response: %.200s", text)
	}
	var content io.Reader = strings.NewReader(sent.Body)
	if sent.IsBase64Encoded {
		content = base64.NewDecoder(base64.StdEncoding, content)
	}
	return &Answer{Status: sent.StatusCode, Header: headerOf(sent.Headers, sent.MultiValueHeaders),
		Body: io.NopCloser(content)}, nil
}

// begin sends an event to the function and waits for the start of its response.
func (f *Function) begin(ctx context.Context, event []byte) (kind string, body io.ReadCloser, err error) {
	i, answer, err := f.api.invoke(ctx, event, Timeout, f.ended)
	switch {
	case errors.Is(err, errEnded):
		return "", nil, fmt.Errorf("%w: %s", err, f.log)
	case err != nil:
		return "", nil, err
	case answer.failure != nil:
		return "", nil, answer.failure
	}
	return answer.request.Header.Get("Content-Type"), &content{request: answer.request, read: i.read}, nil
}

// readBuffered reads a buffered response of at most Lambda's maximum size.
func readBuffered(body io.ReadCloser) ([]byte, error) {
	defer body.Close()
	text, err := io.ReadAll(io.LimitReader(body, maxBuffered+1))
	if err == nil && len(text) > maxBuffered {
		err = &FunctionError{"Function.ResponseSizeTooLarge",
			"Response payload size exceeded maximum allowed payload size (6291556 bytes)."}
	}
	return text, err
}

// readStreamed reads a streamed response's metadata, which precedes the body.
func readStreamed(body io.ReadCloser) (*Answer, error) {
	reader := bufio.NewReader(body)
	var prelude []byte
	for !bytes.HasSuffix(prelude, delimiter) {
		next, err := reader.ReadByte()
		if err != nil {
			body.Close()
			return nil, fmt.Errorf("a response without metadata: %w", err)
		}
		prelude = append(prelude, next)
	}
	var sent struct {
		StatusCode        int
		Headers           map[string]string
		MultiValueHeaders map[string][]string
	}
	if err := json.Unmarshal(bytes.TrimSuffix(prelude, delimiter), &sent); err != nil {
		body.Close()
		return nil, fmt.Errorf("malformed metadata: %w", err)
	}
	return &Answer{
		Streamed: true, Status: sent.StatusCode, Header: headerOf(sent.Headers, sent.MultiValueHeaders),
		Body: struct {
			io.Reader
			io.Closer
		}{reader, body},
	}, nil
}

// headerOf merges the single-value and multi-value headers. If a field is in both, the multi-value
// header takes precedence.
func headerOf(single map[string]string, multiple map[string][]string) http.Header {
	header := http.Header{}
	for field, value := range single {
		header.Set(field, value)
	}
	for field, values := range multiple {
		header[http.CanonicalHeaderKey(field)] = values
	}
	return header
}
