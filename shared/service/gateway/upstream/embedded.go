package upstream

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// embeddedURL is the address of the model server inside this process; the name
// is never resolved.
const embeddedURL = "http://embedded/v1"

// embeddedHeaderTime bounds how long the embedded server waits for the header
// of a request.
const embeddedHeaderTime = 10 * time.Second

// memoryListener accepts connections from within this process, so that the
// embedded model server is called like any other, with HTTP's streams and
// cancellation.
type memoryListener struct {
	connections chan net.Conn
	closed      chan struct{}
	once        sync.Once
}

func newMemoryListener() *memoryListener {
	return &memoryListener{connections: make(chan net.Conn), closed: make(chan struct{})}
}

// dial opens a connection.
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

// Accept returns the next connection.
func (l *memoryListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.connections:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close stops accepting connections.
func (l *memoryListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr returns an address that says what this is.
func (l *memoryListener) Addr() net.Addr { return memoryAddress{} }

type memoryAddress struct{}

func (memoryAddress) Network() string { return "memory" }
func (memoryAddress) String() string  { return "embedded" }

// serveEmbedded serves the handler on the listener; close stops it and waits
// until it has stopped.
func serveEmbedded(handler http.Handler, listener *memoryListener, logger *slog.Logger) (close func()) {
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: embeddedHeaderTime,
		ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
	}
	served := make(chan struct{})
	go func() {
		defer func() { served <- struct{}{} }()
		// It returns when it is closed, and only with that error.
		_ = server.Serve(listener)
	}()
	return func() {
		server.Close()
		<-served
	}
}
