// Package lambdahttp serves an http.Handler from a Lambda function behind an API Gateway REST API,
// with the same requests as on a port.
//
// The integration of a function's methods decides between two modes. Buffered, the default of API
// Gateway: the answer is one JSON object of at most 6 MB. Streaming (response transfer mode
// STREAM): the answer is sent while the handler writes it, of any size.
//
// A handler must not rely on features that a Lambda function lacks: it does not notice that a client has
// left, so a stream is written to its end; a request's body arrives whole before the handler runs, at most
// 6 MB of JSON and so 4.4 MB of binary; connections have no deadlines; trailers are dropped.
package lambdahttp

import (
	"fmt"
	"net/http"
	"os"

	"github.com/aws/aws-lambda-go/lambda"
)

type Mode int

const (
	Buffered Mode = iota
	Streaming
)

// MostSent returns the size of the largest blob that a function should send itself, in
// bytes. Lambda streams at most 200 MB, at 2 MB/s after the first 6 MB, and buffers answers
// of at most 6 MB in base64.
func (m Mode) MostSent() int64 {
	if m == Buffered {
		return 4 << 20
	}
	return 100 << 20
}

// ResponseMode returns the mode of a function whose methods use the transfer mode STREAM. It is
// Buffered if CUTROOM_RESPONSE is "buffered", for methods that do not, and under `sam local`, which
// reads every answer as JSON (docs/local-aws.md). It fails for another value of CUTROOM_RESPONSE.
func ResponseMode(getenv func(string) string) (Mode, error) {
	switch value := getenv("CUTROOM_RESPONSE"); {
	case value != "" && value != "buffered":
		return 0, fmt.Errorf("CUTROOM_RESPONSE: %q is not buffered, its only valid value", value)
	case value == "buffered", getenv("AWS_SAM_LOCAL") == "true":
		return Buffered, nil
	}
	return Streaming, nil
}

// Start serves invocations until Lambda ends the process. It does not return.
func Start(handler http.Handler, mode Mode) {
	if mode == Streaming {
		lambda.Start(stream(handler))
	}
	lambda.Start(buffer(handler))
}

// Main is a function's main: it makes the handler and starts. If making it fails, Main
// writes one line to stderr, which Lambda logs, and the start fails.
func Main(make func() (http.Handler, Mode, error)) {
	handler, mode, err := make()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	Start(handler, mode)
}
