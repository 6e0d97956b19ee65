package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"cutroom/shared/platform/httpserver"
)

const (
	defaultAddress = ":8080"
	// shutdownTime is the time for running requests after a stop.
	shutdownTime = 5 * time.Second
	// lookEvery is how often the engine is checked.
	lookEvery = 15 * time.Second
	// engineGone is how long an engine may take no runs before the worker is
	// unhealthy. It is longer than a crashed engine needs to restart and load its
	// weights. Meanwhile the worker leaves jobs to others.
	engineGone = 5 * time.Minute
)

// health serves /healthz for the container's watchdog, and /metrics.
//
// The worker is unhealthy if its engine has taken no runs for engineGone, or if it
// is stuck with a job that should have ended. Neither stops the worker: restarting
// the container is up to the service.
type health struct {
	server *httpserver.Server
	served chan error
	logger *slog.Logger
	// engine returns an error while the engine takes no runs; it is nil for an
	// engine that always takes them.
	engine func(context.Context) error
	stuck  atomic.Pointer[func() bool]
	// seen is when the engine last took runs, in Unix nanoseconds.
	seen atomic.Int64
}

// newHealth listens and serves.
func newHealth(address string, engine func(context.Context) error, metrics http.Handler,
	logger *slog.Logger) (*health, error) {
	if address == "" {
		address = defaultAddress
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("CUTROOM_ADDR: %w", err)
	}
	h := &health{served: make(chan error, 1), logger: logger, engine: engine}
	h.seen.Store(time.Now().UnixNano())
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", h.answer)
	mux.Handle("GET /metrics", metrics)
	h.server = httpserver.New(httpserver.Config{Handler: mux, Logger: slog.New(slog.DiscardHandler)})
	go func() { h.served <- h.server.Serve(listener) }()
	logger.Info("the worker serves its health", "address", listener.Addr().String())
	return h, nil
}

func (h *health) answer(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	status, text := http.StatusOK, `{"status":"ok"}`
	stuck := h.stuck.Load()
	switch {
	case stuck != nil && (*stuck)():
		status, text = http.StatusServiceUnavailable, `{"status":"stuck"}`
	case time.Since(time.Unix(0, h.seen.Load())) > engineGone:
		status, text = http.StatusServiceUnavailable, `{"status":"no engine"}`
	}
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text)) // it fails if the caller has gone
}

// watch checks the engine until the context ends, and lets /healthz ask stuck from now on.
func (h *health) watch(ctx context.Context, stuck func() bool) {
	h.stuck.Store(&stuck)
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		if h.engine == nil || h.engine(ctx) == nil {
			h.seen.Store(time.Now().UnixNano())
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (h *health) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTime)
	defer cancel()
	if err := errors.Join(h.server.Shutdown(ctx), <-h.served); err != nil {
		h.logger.Error("cannot serve the health", "error", err)
	}
}
