package gateway

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// embeddedURL stands for the model server inside this process; the name is
// never resolved.
const embeddedURL = "http://embedded/v1"

// embeddedHeaderTime bounds how long the embedded server waits for a request's
// header.
const embeddedHeaderTime = 10 * time.Second

// memoryListener accepts connections that are made within this process: the
// embedded model server is called as any other is, with streams and
// cancellation as HTTP has them.
type memoryListener struct {
	connections chan net.Conn
	closed      chan struct{}
	once        sync.Once
}

func newMemoryListener() *memoryListener {
	return &memoryListener{connections: make(chan net.Conn), closed: make(chan struct{})}
}

// dial makes a connection.
func (l *memoryListener) dial(ctx context.Context) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case l.connections <- server:
		return client, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept gives the next connection.
func (l *memoryListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.connections:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close ends the listening.
func (l *memoryListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr gives an address that tells people what this is.
func (l *memoryListener) Addr() net.Addr { return memoryAddress{} }

type memoryAddress struct{}

func (memoryAddress) Network() string { return "memory" }
func (memoryAddress) String() string  { return "embedded" }

// serveEmbedded serves the handler on the listener; close ends it and returns
// once it has.
func serveEmbedded(handler http.Handler, listener *memoryListener, logger *slog.Logger) (close func()) {
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: embeddedHeaderTime,
		ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
	}
	served := make(chan struct{})
	go func() {
		defer func() { served <- struct{}{} }()
		// It ends when it is closed, and with that error alone.
		_ = server.Serve(listener)
	}()
	return func() {
		server.Close()
		<-served
	}
}
