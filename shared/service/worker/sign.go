package worker

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"cutroom/shared/domain/job"
	"cutroom/shared/engine"
)

// sign signs the engine's output if signing is on. Unsigned results are not delivered. If signing fails, the run
// fails (docs/provenance.md).
func (w *Worker) sign(
	ctx context.Context, spec *engine.Spec, made engine.Outcome, stages map[string]time.Duration,
) (*job.Credentials, error) {
	if w.config.Signer == nil {
		return nil, nil
	}
	begun := time.Now()
	ctx, end := w.beginStage(ctx, stageSign)
	folder := filepath.Join(filepath.Dir(spec.Folder), "signed")
	path := filepath.Join(folder, filepath.Base(spec.Output))
	err := os.Mkdir(folder, 0o700)
	var credentials job.Credentials
	if err == nil {
		credentials, err = w.config.Signer.Sign(ctx, *spec, made, resultMIME(spec.Kind), path)
	}
	end(err)
	stages[stageSign] = time.Since(begun)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, &engine.Error{
			Code: job.EngineError, Message: "The result could not be signed.", Retryable: true, Err: fmt.Errorf("sign: %w", err),
		}
	}
	if err := os.Remove(spec.Output); err != nil {
		return nil, fmt.Errorf("remove the unsigned output: %w", err)
	}
	spec.Output = path
	return &credentials, nil
}
