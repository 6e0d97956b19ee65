package stepfn

import (
	"context"

	"cutroom/shared/platform/xray"
)

func traceHeader(ctx context.Context) *string {
	if header := xray.Header(ctx); header != "" {
		return &header
	}
	return nil
}
