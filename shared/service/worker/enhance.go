package worker

import (
	"context"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/job"
)

// Enhancer expands prompts (docs/contract/media.md#forms).
type Enhancer interface {
	// Enhance gives a prompt that says more, of 1 to maxLength code points.
	Enhance(ctx context.Context, prompt string, maxLength int) (string, error)
}

const (
	// enhanceTime is how long a run waits for a prompt to be expanded.
	enhanceTime = 10 * time.Second
	// enhanceField is the field of a form that asks for it.
	enhanceField = "enhance_prompt"
	// maxPrompt is how long an expanded prompt may be, in code points, where
	// the form says nothing.
	maxPrompt = 4000
)

// enhance gives the expanded prompt of a job, "" when it is to be used as it was
// sent: nothing expands it, the job does not ask for it, or expanding fails, as
// no job fails for that.
func (w *Worker) enhance(ctx context.Context, j job.Job, m *catalog.Model) string {
	if w.Enhancer == nil || j.Request.Prompt == "" || !j.Request.Flag(enhanceField) {
		return ""
	}
	longest := maxPrompt
	if field, ok := m.Form.Field("prompt"); ok && field.Max != nil {
		longest = int(*field.Max)
	}
	ctx, cancel := context.WithTimeout(ctx, enhanceTime)
	defer cancel()
	ctx, end := w.beginStage(ctx, stageEnhance)
	prompt, err := w.Enhancer.Enhance(ctx, j.Request.Prompt, longest)
	end(err)
	if err != nil {
		w.Logger.Warn("a prompt is used as it was sent", "job", j.ID, "error", err)
		return ""
	}
	return prompt
}
