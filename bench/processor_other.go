//go:build !linux

package main

import "errors"

func useProcessor(int) error {
	return errors.New("processes are confined to processors on Linux alone")
}

func useProcessors() error { return nil }
