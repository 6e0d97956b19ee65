package launcher

import (
	"syscall"
	"unsafe"
)

// Constants from the kernel's headers in include/uapi that package syscall lacks. They are the same
// on all architectures. A test compares them with golang.org/x/sys/unix.
const (
	// asm-generic/unistd.h
	sysCloseRange            = 436
	sysLandlockCreateRuleset = 444
	sysLandlockAddRule       = 445
	sysLandlockRestrictSelf  = 446

	// asm-generic/fcntl.h
	oPath = 0x200000

	// linux/close_range.h
	closeRangeCloexec = 1 << 2

	// linux/prctl.h
	prCapAmbient      = 47
	prCapAmbientRaise = 2
	prSetNoNewPrivs   = 38

	// linux/seccomp.h
	seccompModeFilter = 2

	// linux/capability.h
	capabilityVersion3 = 0x20080522
	capDACReadSearch   = 2
)

// Landlock access rights, from linux/landlock.h.
const (
	landlockCreateRulesetVersion = 1 << 0
	landlockRulePathBeneath      = 1

	accessExecute     = 1 << 0
	accessWriteFile   = 1 << 1
	accessReadFile    = 1 << 2
	accessReadFolder  = 1 << 3
	accessRemoveDir   = 1 << 4
	accessRemoveFile  = 1 << 5
	accessMakeDir     = 1 << 7
	accessMakeRegular = 1 << 8
	accessRefer       = 1 << 13
	accessTruncate    = 1 << 14
	accessIoctlDevice = 1 << 15
	accessResolveUnix = 1 << 16

	accessBindTCP    = 1 << 0
	accessConnectTCP = 1 << 1

	scopeAbstractUnixSocket = 1 << 0
	scopeSignal             = 1 << 1
)

// struct landlock_ruleset_attr
type rulesetAttr struct{ files, net, scoped uint64 }

// struct landlock_path_beneath_attr is packed: the kernel reads no bytes after the descriptor.
type pathBeneathAttr struct {
	access uint64
	parent int32
}

// struct __user_cap_header_struct; capabilities is one of its two struct __user_cap_data_struct.
type capabilityHeader struct {
	version uint32
	pid     int32
}
type capabilities struct{ effective, permitted, inheritable uint32 }

func fails(errno syscall.Errno) error {
	if errno != 0 {
		return errno
	}
	return nil
}

func control(option, first, second, third uintptr) error {
	_, _, errno := syscall.RawSyscall6(syscall.SYS_PRCTL, option, first, second, third, 0, 0)
	return fails(errno)
}

func capability(call uintptr, header *capabilityHeader, data *[2]capabilities) error {
	_, _, errno := syscall.RawSyscall(call, uintptr(unsafe.Pointer(header)), uintptr(unsafe.Pointer(data)), 0)
	return fails(errno)
}
