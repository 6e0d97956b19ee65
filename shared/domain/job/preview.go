package job

// PreviewBlob names the blob of the latest preview of the job's run, beside the inputs
// (docs/contract/jobs.md#previews). It is there while the run lasts, at most.
func (j Job) PreviewBlob() string { return j.folder() + "/preview-" + j.Nonce }
