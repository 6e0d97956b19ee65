// Package ulimit stops a server that cannot reserve enough address space, with one line that names
// the limit. Below about 2 GiB, the Go runtime would crash with a stack trace before main, while it
// initializes other packages. Below about 1 GiB, it crashes before this package runs.
//
// The package imports only a few standard packages, so Go initializes it before packages whose
// paths begin with a host.
package ulimit

import (
	"os"
	"strconv"
	"syscall"
)

// Least is the minimum address space in bytes. An idle server reserves 2 GiB and uses 0.1 GiB of it.
const Least = 4 << 30

// Checking in main would be too late.
func init() {
	var limit syscall.Rlimit
	if len(os.Args) < 2 || os.Args[1] != "dev" || syscall.Getrlimit(syscall.RLIMIT_AS, &limit) != nil ||
		uint64(limit.Cur) >= Least {
		return
	}
	_, _ = os.Stderr.WriteString("cutroom: the address space is limited to " + strconv.FormatUint(uint64(limit.Cur)>>10, 10) +
		" KiB (ulimit -v). The server reserves " + strconv.Itoa(Least>>10) + " KiB and uses a small part of it: run " +
		"\"ulimit -v unlimited\" first, and limit memory with MemoryMax of systemd or --memory of Docker\n")
	os.Exit(1)
}
