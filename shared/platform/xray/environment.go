package xray

import (
	"fmt"
	"math/rand/v2"
	"time"

	api "go.opentelemetry.io/otel/trace"
)

// Variable says whether a program in AWS is traced by X-Ray.
const Variable = "CUTROOM_TRACING"

// Asked reports whether the environment asks for X-Ray, by CUTROOM_TRACING=xray.
//
// Errors: it has another value.
func Asked(getenv func(string) string) (bool, error) {
	switch value := getenv(Variable); value {
	case "":
		return false, nil
	case "xray":
		return true, nil
	default:
		return false, fmt.Errorf("%s: %q is not xray, the one value that it can have", Variable, value)
	}
}

// FunctionFromEnvironment makes what traces a function; nil where the environment
// does not ask for it, or has no daemon, as under `sam local`.
//
// Errors: those of Asked and NewFunction.
func FunctionFromEnvironment(getenv func(string) string) (api.Tracer, error) {
	asked, err := Asked(getenv)
	daemon := getenv("AWS_XRAY_DAEMON_ADDRESS")
	if err != nil || !asked || daemon == "" {
		return nil, err
	}
	return NewFunction(daemon, time.Now, rand.Uint64)
}
