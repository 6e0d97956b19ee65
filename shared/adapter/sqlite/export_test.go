package sqlite

import (
	"context"
	"time"

	"cutroom/shared/domain/job"
	"cutroom/shared/service/worker"
)

// TryReceive is Receive, except that it returns nil if no job is available now.
func (q *Queue) TryReceive(ctx context.Context, lane job.Lane, lease time.Duration) (worker.Delivery, error) {
	received, err := q.tryReceive(ctx, lane, lease)
	if received == nil {
		return nil, err
	}
	return received, err
}
