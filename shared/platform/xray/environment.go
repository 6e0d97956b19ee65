package xray

import "fmt"

// Variable turns tracing by X-Ray on.
const Variable = "CUTROOM_TRACING"

// Enabled reports whether CUTROOM_TRACING is xray. It fails for other values.
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
