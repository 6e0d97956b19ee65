package job

// PreviewBlob returns the blob name of the run's latest preview (docs/contract/jobs.md#previews). The preview is
// deleted with the run.
func (j Job) PreviewBlob() string { return j.folder() + "/preview-" + j.Nonce }
