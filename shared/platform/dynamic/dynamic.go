//go:build !static

// Package dynamic calls shared libraries without cgo. With the tag static, a program starts on
// systems without glibc, such as Alpine, and loads no library.
package dynamic

import "github.com/ebitengine/purego"

func Open(name string) (handle uintptr, err error) {
	return purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_LOCAL)
}

func Symbol(handle uintptr, name string) (address uintptr, err error) {
	return purego.Dlsym(handle, name)
}

// Bind makes the function to which the pointer points call the address.
func Bind(function any, address uintptr) { purego.RegisterFunc(function, address) }

// A callback is never freed.
func Callback(function any) uintptr { return purego.NewCallback(function) }
