//go:build !linux

package lambdatest

import "syscall"

func endWithParent() *syscall.SysProcAttr { return nil }
