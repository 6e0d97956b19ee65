package stepfn

import (
	"context"

	"cutroom/shared/platform/xray"
)

// traceHeader lets an execution go on with the trace of the submission; nil where
// that is not traced.
func traceHeader(ctx context.Context) *string {
	if header := xray.Header(ctx); header != "" {
		return &header
	}
	return nil
}
