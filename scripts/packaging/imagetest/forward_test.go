//go:build docker

package imagetest_test

import (
	"context"
	"io"
	"net"
	"sync"
)

// forward copies bytes between a connection and a server until both directions have ended or the context ends.
func forward(ctx context.Context, from net.Conn, address string) {
	defer from.Close()
	to, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return
	}
	defer to.Close()
	stop := context.AfterFunc(ctx, func() { from.Close(); to.Close() })
	defer stop()
	var both sync.WaitGroup
	both.Go(func() { carry(to, from) })
	both.Go(func() { carry(from, to) })
	both.Wait()
}

// carry copies everything from one connection to the other, then closes the write side.
func carry(to, from net.Conn) {
	_, _ = io.Copy(to, from) // a broken connection ends both directions
	if tcp, ok := to.(*net.TCPConn); ok {
		_ = tcp.CloseWrite() // fails if the connection is closed
	}
}
