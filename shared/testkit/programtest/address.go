package programtest

import (
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

// FreeAddress returns an address of this machine at which nobody listens, for a program
// that must be told its address before it starts.
func FreeAddress() (string, error) {
	var err error
	for range 100 {
		var listener net.Listener
		listener, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", firstPort+rand.IntN(endPort-firstPort)))
		if err == nil {
			return listener.Addr().String(), listener.Close()
		}
	}
	return "", fmt.Errorf("find a free port: %w", err)
}
