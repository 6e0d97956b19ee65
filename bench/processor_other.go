//go:build !linux

package main

import "errors"

func useProcessor(int) error {
	return errors.New("only Linux can confine processes to processors")
}

func useProcessors() error { return nil }
