package batches

// WithMemory gives an idle runner limits in bytes for long lines in calls, and for long lines in
// checks.
func (r *Runner) WithMemory(call, check int64) {
	r.calling, r.checking = newMemory(call), newMemory(check)
}
