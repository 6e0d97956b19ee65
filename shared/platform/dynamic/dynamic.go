//go:build !static

// Package dynamic calls shared libraries without cgo. If built with the tag static, the program
// also starts on systems without glibc, such as Alpine, but cannot load libraries.
package dynamic

import "github.com/ebitengine/purego"

func Open(name string) (handle uintptr, err error) {
	return purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_LOCAL)
}

func Symbol(handle uintptr, name string) (address uintptr, err error) {
	return purego.Dlsym(handle, name)
}

// Bind makes a function variable, given by its pointer, call the function at the address.
func Bind(function any, address uintptr) { purego.RegisterFunc(function, address) }

// Callbacks are never freed.
func Callback(function any) uintptr { return purego.NewCallback(function) }
