package stepfn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sfn/types"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
	"cutroom/shared/platform/awsclient"
)

// Tasks reports the outcomes of runs to the waiting executions. A token works only once.
type Tasks struct{ client *sfn.Client }

func NewTasks(config aws.Config) *Tasks { return &Tasks{newClient(config)} }

// Succeed returns fault.Conflict if the execution is no longer waiting.
func (t *Tasks) Succeed(ctx context.Context, token string) error {
	ctx, cancel := context.WithTimeout(ctx, awsclient.CallTime)
	defer cancel()
	_, err := t.client.SendTaskSuccess(ctx, &sfn.SendTaskSuccessInput{TaskToken: &token, Output: aws.String("{}")})
	return reportError("report a result", err)
}

func (t *Tasks) Fail(ctx context.Context, token, nonce string, failure job.Failure) error {
	cause, err := json.Marshal(failure)
	if err != nil {
		return fmt.Errorf("stepfn: encode a failure: %w", err)
	}
	if nonce == "" {
		nonce = wholeJob
	}
	ctx, cancel := context.WithTimeout(ctx, awsclient.CallTime)
	defer cancel()
	_, err = t.client.SendTaskFailure(ctx, &sfn.SendTaskFailureInput{
		TaskToken: &token, Error: &nonce, Cause: aws.String(string(cause)),
	})
	return reportError("report a failure", err)
}

func reportError(what string, err error) error {
	var (
		closed  *types.TaskTimedOut
		unknown *types.TaskDoesNotExist
		invalid *types.InvalidToken
	)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &closed), errors.As(err, &unknown), errors.As(err, &invalid):
		return fault.Wrap(err, fault.Conflict, "The task has ended.")
	}
	return fmt.Errorf("stepfn: %s: %w", what, err)
}
