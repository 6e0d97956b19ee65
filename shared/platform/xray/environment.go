package xray

import "fmt"

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
