package httpserver

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"
)

type Surface struct {
	Server   *Server
	Listener net.Listener
}

// Run serves the surfaces until the context ends or one of them fails. It then calls the function stopping, which
// must end long waits. Requests in progress get up to shutdownTime to finish. Run returns the failure, if any.
func Run(ctx context.Context, shutdownTime time.Duration, stopping func(), surfaces ...Surface) error {
	served := make(chan error, len(surfaces))
	for _, surface := range surfaces {
		go func() { served <- surface.Server.Serve(surface.Listener) }()
	}
	open := len(surfaces)
	var failed error
	select {
	case err := <-served:
		failed = fmt.Errorf("serve: %w", err)
		open--
	case <-ctx.Done():
	}
	stopping()
	shutdown, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
	defer cancel()
	var ending sync.WaitGroup
	for _, surface := range surfaces {
		ending.Go(func() {
			if err := surface.Server.Shutdown(shutdown); err != nil {
				surface.Server.logger.Warn("requests were cut off", "error", err)
			}
		})
	}
	ending.Wait()
	for range open {
		if err := <-served; err != nil && failed == nil {
			failed = fmt.Errorf("serve: %w", err)
		}
	}
	return failed
}
