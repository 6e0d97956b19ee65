//go:build static

package dynamic

import "fmt"

func Open(name string) (handle uintptr, err error) {
	return 0, fmt.Errorf("%s: this static build of the program cannot load libraries", name)
}

// The functions below are unreachable, because Open always fails.

func Symbol(uintptr, string) (address uintptr, err error) { panic("dynamic: no library is open") }
func Bind(any, uintptr)                                   { panic("dynamic: no library is open") }
func Callback(any) uintptr                                { panic("dynamic: no library is open") }
