package worker

import (
	"context"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/job"
)

type Enhancer interface {
	// Enhance returns a more detailed prompt of 1 to maxLength code points.
	Enhance(ctx context.Context, prompt string, maxLength int) (string, error)
}

const (
	// enhanceTime limits how long to wait for an expanded prompt.
	enhanceTime  = 10 * time.Second
	enhanceField = "enhance_prompt"
	// maxPrompt is the maximum length of an expanded prompt, in code points, if the form sets no limit.
	maxPrompt = 4000
)

// enhance returns a job's expanded prompt. It returns "" if there is no enhancer, the job does not ask for expansion,
// or the expansion fails. The original prompt must then be used.
func (w *Worker) enhance(ctx context.Context, j job.Job, m *catalog.Model) string {
	if w.config.Enhancer == nil || j.Request.Prompt == "" || !j.Request.Flag(enhanceField) {
		return ""
	}
	longest := maxPrompt
	if field, ok := m.Form.Field("prompt"); ok && field.Max != nil {
		longest = int(*field.Max)
	}
	ctx, cancel := context.WithTimeout(ctx, enhanceTime)
	defer cancel()
	ctx, end := w.beginStage(ctx, stageEnhance)
	prompt, err := w.config.Enhancer.Enhance(ctx, j.Request.Prompt, longest)
	end(err)
	if err != nil {
		w.config.Logger.Warn("cannot expand a prompt; using the original", "job", j.ID, "error", err)
		return ""
	}
	return prompt
}
