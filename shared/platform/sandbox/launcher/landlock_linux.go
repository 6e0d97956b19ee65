package launcher

import (
	"syscall"
	"unsafe"
)

const (
	readFolder = accessReadFile | accessReadFolder
	write      = accessWriteFile | accessTruncate | accessMakeRegular | accessRemoveFile | accessMakeDir | accessRemoveDir
	// These access rights apply to files as well as to folders.
	ofFiles = accessExecute | accessWriteFile | accessReadFile | accessTruncate
)

func landlockVersion() (int, error) {
	version, _, errno := syscall.Syscall(sysLandlockCreateRuleset, 0, 0, landlockCreateRulesetVersion)
	return int(version), fails(errno)
}

// handled returns every right that the given version of Landlock can restrict.
func handled(version int) *rulesetAttr {
	all := &rulesetAttr{files: accessRefer - 1} // the rights in version 1
	for _, since := range []struct {
		version int
		right   uint64
	}{
		{2, accessRefer}, {3, accessTruncate}, {5, accessIoctlDevice}, {9, accessResolveUnix},
	} {
		if version >= since.version {
			all.files |= since.right
		}
	}
	if version >= 4 {
		all.net = accessBindTCP | accessConnectTCP
	}
	if version >= 6 {
		all.scoped = scopeAbstractUnixSocket | scopeSignal
	}
	return all
}

// restrictFiles restricts this thread, and the program that replaces it, to the named files. If the
// kernel supports it, it also denies TCP, abstract sockets and signals to other processes.
func restrictFiles(o Order) error {
	version, err := landlockVersion()
	if err != nil {
		return err
	}
	all := handled(version)
	made, _, errno := syscall.Syscall(
		sysLandlockCreateRuleset, uintptr(unsafe.Pointer(all)), unsafe.Sizeof(*all), 0)
	if errno != 0 {
		return errno
	}
	ruleset := int(made)
	defer syscall.Close(ruleset)
	if err := allow(ruleset, all.files, "/dev/null", accessReadFile|accessWriteFile); err != nil {
		return err
	}
	for _, path := range o.Executes {
		if err := allow(ruleset, all.files, path, readFolder|accessExecute); err != nil {
			return err
		}
	}
	for _, path := range o.Reads {
		if err := allow(ruleset, all.files, path, readFolder); err != nil {
			return err
		}
	}
	if o.Folder != "" {
		if err := allow(ruleset, all.files, o.Folder, readFolder|write); err != nil {
			return err
		}
	}
	_, _, errno = syscall.Syscall(sysLandlockRestrictSelf, uintptr(ruleset), 0, 0)
	return fails(errno)
}

func allow(ruleset int, handled uint64, path string, rights uint64) error {
	fd, err := syscall.Open(path, oPath|syscall.O_CLOEXEC, 0)
	if err == syscall.ENOENT {
		return nil // the program itself will report that the file is missing
	}
	if err != nil {
		return failed(path, err)
	}
	defer syscall.Close(fd)
	var stat syscall.Stat_t
	if err := syscall.Fstat(fd, &stat); err != nil {
		return failed(path, err)
	}
	if stat.Mode&syscall.S_IFMT != syscall.S_IFDIR {
		rights &= ofFiles
	}
	rule := &pathBeneathAttr{access: rights & handled, parent: int32(fd)}
	_, _, errno := syscall.Syscall6(
		sysLandlockAddRule, uintptr(ruleset), landlockRulePathBeneath, uintptr(unsafe.Pointer(rule)), 0, 0, 0)
	if errno != 0 {
		return failed(path, errno)
	}
	return nil
}
