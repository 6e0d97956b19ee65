package batches

// WithMemory sets the limits, in bytes, for long lines in calls and in validation. The runner must
// be idle.
func (r *Runner) WithMemory(call, check int64) {
	r.calling, r.checking = newMemory(call), newMemory(check)
}
