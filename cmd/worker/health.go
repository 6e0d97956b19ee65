package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"cutroom/shared/httpserver"
)

// shutdownTime is how long requests under way may take after a stop.
const shutdownTime = 5 * time.Second

// health serves /healthz, for who watches the container.
type health struct {
	server *httpserver.Server
	served chan error
	logger *slog.Logger
}

func newHealth(address string, logger *slog.Logger) (*health, error) {
	if address == "" {
		address = ":8080"
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("CUTROOM_ADDR: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"status":"ok"}`)) // fails when the caller has gone
	})
	h := &health{server: httpserver.New(httpserver.Config{Handler: mux, Logger: slog.New(slog.DiscardHandler)}), served: make(chan error, 1), logger: logger}
	go func() { h.served <- h.server.Serve(listener) }()
	logger.Info("the worker tells its health", "address", listener.Addr().String())
	return h, nil
}

func (h *health) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTime)
	defer cancel()
	if err := errors.Join(h.server.Shutdown(ctx), <-h.served); err != nil {
		h.logger.Error("tell the health", "error", err)
	}
}
