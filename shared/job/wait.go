package job

import (
	"context"
	"fmt"
	"time"
)

// How often a job is looked at that somebody waits for. One that is pending may
// stand in a long queue, beside many others that are waited for; of those that
// are being processed there are never more than workers.
const (
	firstLook       = 5 * time.Millisecond
	pendingLooks    = 100 * time.Millisecond
	processingLooks = 20 * time.Millisecond
)

// Wait waits until an account's job has ended, and gives it. The deadline of the
// job ends the wait too.
//
// Errors: the context's when it ends first; those of Get.
func (s *Service) Wait(ctx context.Context, account, id string) (Job, error) {
	pause := firstLook
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return Job{}, ctx.Err()
		case <-timer.C:
		}
		j, err := s.Get(ctx, account, id)
		switch {
		case ctx.Err() != nil:
			return Job{}, ctx.Err()
		case err != nil || j.Status.Terminal():
			return j, err
		case j.Status == Pending:
			pause = min(pause*3/2, pendingLooks)
		default:
			pause = min(pause*3/2, processingLooks)
		}
		timer.Reset(pause)
	}
}

// Cancel ends a job from outside; its run stops when it next looks at the
// record.
//
// Errors: fault.NotFound; fault.Conflict when the job has ended.
func (s *Service) Cancel(ctx context.Context, id string, reason Failure) error {
	if err := s.Store.Fail(ctx, id, "", reason, s.Now()); err != nil {
		return fmt.Errorf("job: cancel %s: %w", id, err)
	}
	return nil
}
