package batches

// WithMemory sets the memory limits for long lines, in bytes. The runner must be idle.
func (r *Runner) WithMemory(call, check int64) {
	r.calling, r.checking = newMemory(call), newMemory(check)
}

// WithBlobs replaces the blob store. The runner must be idle.
func (r *Runner) WithBlobs(b Blobs) { r.config.Blobs = b }
