package job

// PreviewBlob names the blob of the run's latest preview (docs/contract/jobs.md#previews). It
// exists at most while the run lasts.
func (j Job) PreviewBlob() string { return j.folder() + "/preview-" + j.Nonce }
