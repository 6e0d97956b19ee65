package launcher

import (
	"syscall"
	"unsafe"
)

// What package syscall lacks, by the names and numbers of the kernel's headers in
// include/uapi. These are the same on all architectures that Go and Landlock have in
// common; a test compares them with golang.org/x/sys/unix.
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

// What a ruleset of Landlock handles, linux/landlock.h.
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

// rulesetAttr is struct landlock_ruleset_attr.
type rulesetAttr struct{ files, net, scoped uint64 }

// pathBeneathAttr is struct landlock_path_beneath_attr, which is packed: nothing of what
// is after its descriptor is read.
type pathBeneathAttr struct {
	access uint64
	parent int32
}

// capabilityHeader is struct __user_cap_header_struct, and capabilities one of the two
// struct __user_cap_data_struct that belong to it.
type capabilityHeader struct {
	version uint32
	pid     int32
}
type capabilities struct{ effective, permitted, inheritable uint32 }

// fails returns the error of a call.
func fails(errno syscall.Errno) error {
	if errno != 0 {
		return errno
	}
	return nil
}

// control calls prctl.
func control(option, first, second, third uintptr) error {
	_, _, errno := syscall.RawSyscall6(syscall.SYS_PRCTL, option, first, second, third, 0, 0)
	return fails(errno)
}

// capability calls capget or capset.
func capability(call uintptr, header *capabilityHeader, data *[2]capabilities) error {
	_, _, errno := syscall.RawSyscall(call, uintptr(unsafe.Pointer(header)), uintptr(unsafe.Pointer(data)), 0)
	return fails(errno)
}
