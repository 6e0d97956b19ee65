package main

import (
	"errors"
	"fmt"
	"net"

	"golang.org/x/sys/unix"
)

func listen(setting, address string) (net.Listener, error) {
	listener, err := net.Listen("tcp", address)
	if errors.Is(err, unix.EADDRINUSE) {
		return nil, fmt.Errorf(
			"%s: %s is in use by another program: stop it, or choose another address, such as %[1]s=127.0.0.1:9080", setting,
			address)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", setting, err)
	}
	return listener, nil
}
