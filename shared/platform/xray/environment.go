package xray

import (
	"fmt"
	"math/rand/v2"
	"time"

	api "go.opentelemetry.io/otel/trace"
)

// Variable says whether a program in AWS is traced by X-Ray.
const Variable = "CUTROOM_TRACING"

// Enabled reports whether the environment asks for X-Ray, by CUTROOM_TRACING=xray. It
// fails if the variable has another value.
func Enabled(getenv func(string) string) (bool, error) {
	switch value := getenv(Variable); value {
	case "":
		return false, nil
	case "xray":
		return true, nil
	default:
		return false, fmt.Errorf("%s: %q is not xray, its only valid value", Variable, value)
	}
}

// FunctionFromEnvironment returns the tracer of a function; nil if the environment does
// not ask for one, or has no daemon, as under `sam local`.
//
// Errors: those of Enabled and NewFunction.
func FunctionFromEnvironment(getenv func(string) string) (api.Tracer, error) {
	asked, err := Enabled(getenv)
	daemon := getenv("AWS_XRAY_DAEMON_ADDRESS")
	if err != nil || !asked || daemon == "" {
		return nil, err
	}
	return NewFunction(daemon, time.Now, rand.Uint64)
}
