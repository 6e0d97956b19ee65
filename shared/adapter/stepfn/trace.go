package stepfn

import (
	"context"

	"cutroom/shared/platform/xray"
)

// traceHeader returns the header by which an execution continues the trace of the
// submission, or nil if that is not traced.
func traceHeader(ctx context.Context) *string {
	if header := xray.Header(ctx); header != "" {
		return &header
	}
	return nil
}
