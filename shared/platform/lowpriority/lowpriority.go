// Package lowpriority runs work that may take as long as it likes on the processor time
// that others leave.
package lowpriority

import "runtime"

// Run runs a function on a thread of its own with the lowest priority, where the system
// has such a thing, and returns when it has ended. What it starts in goroutines runs as
// usual.
func Run(do func()) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		// Never unlocked: the thread ends with the goroutine.
		runtime.LockOSThread()
		lower()
		do()
	}()
	<-ended
}
