//go:build unix && !linux

package launcher

import (
	"os"
	"syscall"
)

func tryLayers(Order) Ability { return Ability{} }

// launch sets the limits that the system supports, and executes the program.
func launch(o Order) error {
	syscall.CloseOnExec(int(o.Status))
	for resource, limit := range map[int]int64{
		syscall.RLIMIT_CPU: o.Seconds, syscall.RLIMIT_FSIZE: o.MaxFile, syscall.RLIMIT_NOFILE: MaxOpen,
		syscall.RLIMIT_CORE: 0, syscall.RLIMIT_AS: o.Memory,
	} {
		var now syscall.Rlimit
		if err := syscall.Getrlimit(resource, &now); err != nil {
			continue
		}
		now.Max = min(now.Max, uint64(limit))
		now.Cur = now.Max
		_ = syscall.Setrlimit(resource, &now)
	}
	if _, err := syscall.Write(int(o.Status), []byte{'+'}); err != nil {
		return err
	}
	return syscall.Exec(o.Program, append([]string{o.Program}, o.Args...), os.Environ())
}
