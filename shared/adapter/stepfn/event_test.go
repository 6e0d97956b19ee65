package stepfn_test

import (
	"fmt"
	"testing"

	"cutroom/shared/adapter/stepfn"
	"cutroom/shared/domain/job"
)

func TestReadStopDecodesEvents(t *testing.T) {
	const detail = `{"executionArn": "arn:aws:states:eu-central-1:000000000000:execution:jobs:job_1",
		"stateMachineArn": "arn:aws:states:eu-central-1:000000000000:stateMachine:jobs", "name": "job_1",
		"status": %q, "startDate": 1551225271984, "stopDate": 1551225272000, "input": "{}", "output": null,
		"error": %s, "cause": null}`
	for _, c := range []struct {
		status, why string
		want        job.StopReason
	}{
		{"FAILED", `"DynamoDB.ConditionalCheckFailedException"`, job.Refused},
		{"FAILED", `"DynamoDB.SdkClientException"`, job.Broken},
		{"FAILED", `"States.Runtime"`, job.Broken},
		{"FAILED", "null", job.Refused},
		{"TIMED_OUT", "null", job.Overran},
		{"ABORTED", "null", job.Aborted},
	} {
		id, stop, err := stepfn.ReadStop(fmt.Appendf(nil, detail, c.status, c.why))
		if err != nil || id != "job_1" || stop != c.want {
			t.Errorf("%s with %s: %s is %s (%v), want %s", c.status, c.why, id, stop, err, c.want)
		}
	}
	for name, wrong := range map[string]string{
		"a running execution": fmt.Sprintf(detail, "RUNNING", "null"),
		"no execution":        `{"status": "FAILED"}`,
		"no JSON":             "FAILED",
	} {
		if _, _, err := stepfn.ReadStop([]byte(wrong)); err == nil {
			t.Errorf("%s was accepted as a stop", name)
		}
	}
}
