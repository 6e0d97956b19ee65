package batches

// WithMemory has a runner that does nothing yet hold so many bytes of long lines whose calls
// are made, and so many that are looked at.
func (r *Runner) WithMemory(call, check int64) {
	r.calling, r.checking = newMemory(call), newMemory(check)
}
