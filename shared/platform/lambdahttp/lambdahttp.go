// Package lambdahttp serves an http.Handler from a Lambda function behind an API
// Gateway REST API: the handler is the one that a server on a port has, and sees
// the requests that it would see there.
//
// A function answers in one of two forms, as the integration of its methods is
// set up. Buffered, which is the default of API Gateway, the answer is one JSON
// object of at most 6 MB. Streaming (response transfer mode STREAM), the answer
// goes out as the handler writes it, without a bound on its size.
//
// What a Lambda function cannot do, a handler must not rely on: the client's
// leaving is not told, so that a stream is written to its end; a request's body
// arrives whole before the handler runs, at most 6 MB of JSON and so 4.4 MB of
// binary; time limits of connections cannot be set; trailers are dropped.
package lambdahttp

import (
	"fmt"
	"net/http"
	"os"

	"github.com/aws/aws-lambda-go/lambda"
)

// Form is how a function answers.
type Form int

// The forms.
const (
	Buffered Form = iota
	Streaming
)

// ResponseMode gives the form of a function whose methods are deployed with
// the transfer mode STREAM, by its environment: Buffered where CUTROOM_RESPONSE
// is "buffered", which says that they are not, and under `sam local`, which
// reads every answer as JSON (docs/deploy.md).
//
// Errors: CUTROOM_RESPONSE has another value.
func ResponseMode(getenv func(string) string) (Form, error) {
	switch value := getenv("CUTROOM_RESPONSE"); {
	case value != "" && value != "buffered":
		return 0, fmt.Errorf("CUTROOM_RESPONSE: %q is not buffered, the one value that it can have", value)
	case value == "buffered", getenv("AWS_SAM_LOCAL") == "true":
		return Buffered, nil
	}
	return Streaming, nil
}

// Start takes invocations until Lambda ends the process; it does not return.
func Start(handler http.Handler, form Form) {
	if form == Streaming {
		lambda.Start(stream(handler))
	}
	lambda.Start(buffer(handler))
}

// Main is a function's main: it makes the handler and starts. What goes wrong
// before that is one line on stderr, which Lambda logs, and the start fails.
func Main(make func() (http.Handler, Form, error)) {
	handler, form, err := make()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	Start(handler, form)
}
