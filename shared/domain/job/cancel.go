package job

import (
	"context"
	"fmt"
)

// Orchestrator sees to jobs outside of their store.
type Orchestrator interface {
	// Stop ends what is under way for a job that has ended. It is no error when
	// nothing is.
	Stop(ctx context.Context, id string) error
}

// Cancel ends a job from outside. The account's place is free at once; a run
// stops when it next looks at the record, which is what counts: an orchestrator
// that cannot be told finds the job ended.
//
// Errors: fault.NotFound; fault.Conflict when the job has ended otherwise.
func (s *Service) Cancel(ctx context.Context, id string, reason Failure) error {
	if err := s.Store.Fail(ctx, id, "", reason, s.Now()); err != nil {
		return fmt.Errorf("job: cancel %s: %w", id, err)
	}
	if s.Orchestrator == nil {
		return nil
	}
	if err := s.Orchestrator.Stop(ctx, id); err != nil {
		s.Logger.WarnContext(ctx, "stop the orchestration of a cancelled job", "job", id, "error", err)
	}
	return nil
}
