package lowpriority

import "golang.org/x/sys/unix"

// lowest is the nice value that leaves all others the processor.
const lowest = 19

// lower gives the calling thread the lowest priority. Where it may not the work runs with
// the usual one.
func lower() { _ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), lowest) }
