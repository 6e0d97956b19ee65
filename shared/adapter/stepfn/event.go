package stepfn

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"cutroom/shared/domain/job"
)

// ReadStop reads the detail of an event of the kind "Step Functions Execution
// Status Change": which job's execution has stopped, and how. The event must be
// of an execution that FAILED, TIMED_OUT or was ABORTED.
func ReadStop(detail []byte) (id string, stop job.StopReason, err error) {
	var execution struct {
		Name   string `json:"name"`
		Status string `json:"status"`
		Error  string `json:"error"`
	}
	if err := json.Unmarshal(detail, &execution); err != nil {
		return "", "", fmt.Errorf("stepfn: an event: %w", err)
	}
	if execution.Name == "" {
		return "", "", errors.New("stepfn: an event names no execution")
	}
	switch execution.Status {
	case "FAILED":
		// An event that does not say why is taken for the harmless kind: a job
		// that a run has is then left to that run and its deadline.
		stop = job.Refused
		if execution.Error != "" && !strings.HasSuffix(execution.Error, "ConditionalCheckFailedException") {
			stop = job.Broken
		}
	case "TIMED_OUT":
		stop = job.Overran
	case "ABORTED":
		stop = job.Aborted
	default:
		return "", "", fmt.Errorf("stepfn: an event of an execution that is %q", execution.Status)
	}
	return execution.Name, stop, nil
}
