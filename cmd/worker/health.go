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

	"cutroom/shared/platform/clock"
	"cutroom/shared/platform/httpserver"
)

const (
	defaultAddress   = ":8080"
	shutdownTime     = 5 * time.Second // how long running requests may take to finish
	engineCheckEvery = 15 * time.Second
	// engineGone is how long an engine may reject runs before the worker is unhealthy. A crashed engine needs
	// less time to restart and load its weights. Meanwhile the worker leaves jobs to other workers.
	engineGone = 5 * time.Minute
)

// health serves /healthz for the container's health check, and /metrics.
//
// The worker is unhealthy if its engine has rejected runs for engineGone, or if a job has overrun its time. The
// worker does not stop itself, because ECS replaces the task.
type health struct {
	server *httpserver.Server
	served chan error
	logger *slog.Logger
	// engine returns an error while the engine accepts no runs. It is nil if the engine always accepts runs.
	engine func(context.Context) error
	stuck  atomic.Pointer[func() bool]
	// seen is when the engine last accepted runs, in Unix nanoseconds.
	seen atomic.Int64
}

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
	logger.Info("serving health checks", "address", listener.Addr().String())
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
	_, _ = w.Write([]byte(text)) // fails if the client is gone
}

// watch checks the engine until the context ends. It also registers the function stuck, by which /healthz learns
// whether a job has overrun its time.
func (h *health) watch(ctx context.Context, stuck func() bool) {
	h.stuck.Store(&stuck)
	for running := true; running; running = clock.Wait(ctx, engineCheckEvery) {
		if h.engine == nil || h.engine(ctx) == nil {
			h.seen.Store(time.Now().UnixNano())
		}
	}
}

func (h *health) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTime)
	defer cancel()
	if err := errors.Join(h.server.Shutdown(ctx), <-h.served); err != nil {
		h.logger.Error("cannot serve /healthz", "error", err)
	}
}
