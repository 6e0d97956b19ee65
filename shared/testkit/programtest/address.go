package programtest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// Systems give connections and listeners that ask for any port one from 32768 on; below,
// nobody takes a port who does not name it.
const (
	firstPort = 10000
	endPort   = 32768
)

// FreeAddress returns an address of this machine at which nobody listens, by TCP or UDP,
// for a program that must be told its address before it starts.
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

// free returns an error if somebody listens at the address.
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
