package stepfn

import (
	"context"

	"cutroom/shared/platform/xray"
)

// traceHeader returns the header that continues the submission's trace, or nil without a trace.
func traceHeader(ctx context.Context) *string {
	if header := xray.Header(ctx); header != "" {
		return &header
	}
	return nil
}
