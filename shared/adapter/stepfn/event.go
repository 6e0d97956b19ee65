package stepfn

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"cutroom/shared/domain/job"
)

// ReadStop reads the detail of a "Step Functions Execution Status Change" event, whose status must
// be FAILED, TIMED_OUT or ABORTED. It returns the job whose execution stopped, and the reason.
func ReadStop(detail []byte) (id string, stop job.StopReason, err error) {
	var execution struct {
		Name   string `json:"name"`
		Status string `json:"status"`
		Error  string `json:"error"`
	}
	if err := json.Unmarshal(detail, &execution); err != nil {
		return "", "", fmt.Errorf("stepfn: read an event: %w", err)
	}
	if execution.Name == "" {
		return "", "", errors.New("stepfn: an event does not name its execution")
	}
	switch execution.Status {
	case "FAILED":
		// Treat an event without a reason as a rejected write, which is the harmless case.
		stop = job.Refused
		if execution.Error != "" && !strings.HasSuffix(execution.Error, "ConditionalCheckFailedException") {
			stop = job.Broken
		}
	case "TIMED_OUT":
		stop = job.Overran
	case "ABORTED":
		stop = job.Aborted
	default:
		return "", "", fmt.Errorf("stepfn: unexpected execution status %q", execution.Status)
	}
	return execution.Name, stop, nil
}
