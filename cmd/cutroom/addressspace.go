package main

import (
	"fmt"
	"syscall"
)

// minAddressSpace is how much address space the server must be able to reserve, in
// bytes. An idle server reserves 2 GiB, of which it uses 0.1 GiB.
const minAddressSpace = 4 << 30

// checkAddressSpace refuses a limit under which the runtime ends the server with a
// stack trace as soon as it needs another thread.
func checkAddressSpace() error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_AS, &limit); err != nil || limit.Cur >= minAddressSpace {
		return nil
	}
	return fmt.Errorf("the address space is limited to %d KiB (ulimit -v), and the server needs at least %d KiB, "+
		"most of which it reserves and does not use: run \"ulimit -v unlimited\" first, and limit memory with "+
		"MemoryMax of systemd or --memory of Docker", uint64(limit.Cur)>>10, uint64(minAddressSpace)>>10)
}
