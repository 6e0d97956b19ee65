package stepfn

import (
	"context"

	"cutroom/shared/platform/xray"
)

// traceHeader continues the submission's trace. It returns nil without a trace.
func traceHeader(ctx context.Context) *string {
	if header := xray.Header(ctx); header != "" {
		return &header
	}
	return nil
}
