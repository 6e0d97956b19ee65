package programtest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// Operating systems assign ports from 32768 up to connections, and to listeners without a fixed
// port. Lower ports are used only on request.
const (
	firstPort = 10000
	endPort   = 32768
)

// FreeAddress returns a local address that is unused for TCP and UDP, for a program that must know
// its address before it starts.
func FreeAddress() (string, error) {
	var err error
	for range 100 {
		address := fmt.Sprintf("127.0.0.1:%d", firstPort+rand.IntN(endPort-firstPort))
		if err = free(address); err == nil {
			return address, nil
		}
	}
	return "", fmt.Errorf("find a free port: %w", err)
}

func free(address string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	packets, err := net.ListenPacket("udp", address)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	return errors.Join(packets.Close(), listener.Close())
}
