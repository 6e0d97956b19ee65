package job

// PreviewBlob names the blob of the run's latest preview (docs/contract/jobs.md#previews). It is
// deleted when the run ends.
func (j Job) PreviewBlob() string { return j.folder() + "/preview-" + j.Nonce }
