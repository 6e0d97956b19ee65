package job

import (
	"context"
	"fmt"
)

type Orchestrator interface {
	// Stop stops a job's orchestration. It succeeds even if no orchestration is running.
	Stop(ctx context.Context, id string) error
}

// Cancel ends a job and immediately frees the account's slot. A run stops when it next reads the
// record. If the orchestrator cannot be reached, it learns later that the job has ended.
//
// Errors: fault.NotFound; fault.Conflict if the job has already ended.
func (s *Service) Cancel(ctx context.Context, id string, reason Failure) error {
	if err := s.config.Store.Fail(ctx, id, "", reason, s.config.Now()); err != nil {
		return fmt.Errorf("job: cancel %s: %w", id, err)
	}
	if s.config.Orchestrator == nil {
		return nil
	}
	if err := s.config.Orchestrator.Stop(ctx, id); err != nil {
		s.config.Logger.WarnContext(ctx, "cannot stop the orchestration of a cancelled job", "job", id, "error", err)
	}
	return nil
}
