// Package lambdahttp serves an http.Handler from a Lambda function behind an API Gateway REST API.
// Handlers see the same requests as on a port.
//
// The integration of a function's methods determines the mode. In Buffered mode, API Gateway's
// default, the response is one JSON object of at most 6 MB. In Streaming mode (response transfer
// mode STREAM), the response is sent while the handler writes it, and can have any size.
//
// Lambda functions do not notice that a client has disconnected, so a stream is written to its end.
// The entire request body arrives before the handler runs: at most 6 MB of JSON, which is 4.4 MB of
// binary data. Connections have no deadlines, and trailers are dropped.
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

// MostSent returns the size of the largest blob that a function should send itself, in bytes. Lambda streams at
// most 200 MB, at 2 MB/s after the first 6 MB, and buffers at most 6 MB in base64.
func (m Mode) MostSent() int64 {
	if m == Buffered {
		return 4 << 20
	}
	return 100 << 20
}

// ResponseMode returns Streaming, or Buffered if CUTROOM_RESPONSE is "buffered", as needed for API
// Gateway without STREAM and for `sam local` (docs/local-aws.md). Other values are an error.
func ResponseMode(getenv func(string) string) (Mode, error) {
	switch value := getenv("CUTROOM_RESPONSE"); {
	case value != "" && value != "buffered":
		return 0, fmt.Errorf("CUTROOM_RESPONSE: invalid value %q; the only valid value is buffered", value)
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

// Main creates the handler and serves it. If that fails, it logs the error in one line.
func Main(make func() (http.Handler, Mode, error)) {
	handler, mode, err := make()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	Start(handler, mode)
}
