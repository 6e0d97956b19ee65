package xray

import "fmt"

const Variable = "CUTROOM_TRACING"

// Enabled reports whether CUTROOM_TRACING is xray. Any value other than xray and "" is an error.
func Enabled(getenv func(string) string) (bool, error) {
	switch value := getenv(Variable); value {
	case "":
		return false, nil
	case "xray":
		return true, nil
	default:
		return false, fmt.Errorf("%s: invalid value %q; the only valid value is xray", Variable, value)
	}
}
