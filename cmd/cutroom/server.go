package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"

	"cutroom/shared/app/engineconfig"
	"cutroom/shared/domain/batch"
	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/file"
	"cutroom/shared/domain/job"
	"cutroom/shared/platform/clock"
	"cutroom/shared/platform/httpserver"
	"cutroom/shared/platform/otlp"
	"cutroom/shared/platform/reserve"
	"cutroom/shared/service/batches"
	"cutroom/shared/service/health"
	"cutroom/shared/service/worker"
)

const (
	lease         = 30 * time.Second       // how long a hanging worker keeps its job
	progressEvery = 200 * time.Millisecond // writes are cheap here
	previewEvery  = 2 * time.Second
	checkEvery    = time.Second      // time between checks for cancelled running jobs
	shutdownTime  = 10 * time.Second // how long running requests may take to finish
	// reserved is the size, in bytes, of the file that is deleted when the disk is full. It is more
	// than the database and its write-ahead log need for any delete.
	reserved = 8 << 20
)

type server struct {
	logger *slog.Logger
	lock   *folderLock
	storage
	reserve *reserve.Reserve
	// clock provides all stored times. Durations are measured with the system's monotonic clock.
	clock      *clock.Clock
	checker    *health.Checker
	listener   net.Listener
	http       *httpserver.Server
	worker     *worker.Worker
	estimating worker.Estimating
	sweeper    *job.Sweeper
	files      *file.Sweeper
	ended      *batch.Sweeper
	batches    *batches.Runner
	tokens     *credential.TokenSweeper
	budgets    *budget.Manager
	gateway    *inference
	sessions   *sessions
	webhooks   webhooks
	traces     otlp.Traces
	devKey     string
	// stopping is canceled when the server begins to stop, before its requests have ended.
	stopping context.Context
	stop     context.CancelFunc
}

// newServer opens the data folder, recovers from a crash, and listens. On error it closes everything it opened.
func newServer(ctx context.Context, c *devCommand, machine machineClocks, logger *slog.Logger) (*server, error) {
	s := &server{logger: logger}
	s.stopping, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	if err := s.build(ctx, c, machine); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// recover cleans up after a crash. Because this process holds the folder's lock, every lease, unsettled claim and
// reservation belongs to a worker, request or upload that no longer exists. Work that grows with the stored data
// is left to checkBlobs and the sweepers, which run while the server serves requests.
func (s *server) recover(ctx context.Context) error {
	if err := s.records.Queue().RecoverLeases(ctx); err != nil {
		return err
	}
	if err := s.records.IdempotencyKeys().Abandon(ctx, s.clock.Now()); err != nil {
		return err
	}
	// On a full disk this write fails, but the reservations still expire on schedule.
	if err := s.records.Files().ReleaseAll(ctx); err != nil && !fault.Is(err, fault.StorageFull) {
		return err
	}
	if err := s.sweeper.Expire(ctx); err != nil {
		return err
	}
	s.blobs.RememberNewcomers()
	return s.putBackKnown(ctx, s.logger)
}

// run serves until the context ends and then stops in order: it accepts no new requests, rejects
// requests that are waiting for a model server, hands jobs back, and finishes running requests.
func (s *server) run(ctx context.Context) error {
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	running.Go(func() { s.worker.Run(background) })
	running.Go(func() { s.estimating.Run(background) })
	running.Go(func() { engineconfig.Inspect(background, s.estimating.Engine, s.logger) })
	running.Go(func() { s.sweeper.Run(background) })
	running.Go(func() { s.files.Run(background) })
	running.Go(func() { s.tokens.Run(background) })
	running.Go(func() { s.watchStorage(background) })
	running.Go(func() { s.checkBlobs(background) })
	running.Go(func() { s.clock.Run(background, s.records.ShiftTimes) })
	running.Go(func() { s.webhooks.loop.Run(background) })
	running.Go(func() { s.gateway.followCatalog(background) })
	var live sync.WaitGroup
	live.Go(func() { s.sessions.server.Run(background) })
	live.Go(func() { s.batches.Run(background) })
	// Keep writing usage and settling budgets until the last request and session have ended.
	writing, stopWriting := context.WithCancel(context.WithoutCancel(ctx))
	running.Go(func() { s.gateway.writer.Run(writing) })
	running.Go(func() { s.budgets.Run(writing) })
	defer running.Wait()
	defer stopWriting()
	defer live.Wait()
	defer stop()

	s.sessions.await(ctx)
	err := httpserver.Run(ctx, shutdownTime, func() {
		s.logger.Info("stopping")
		s.gateway.gateway.Drain()
		s.stop()
		stop()
	}, httpserver.Surface{Server: s.http, Listener: s.listener},
		httpserver.Surface{Server: s.gateway.http, Listener: s.gateway.listener})
	var mismatch *mismatchError
	if errors.As(context.Cause(ctx), &mismatch) {
		err = errors.Join(mismatch, err)
	}
	return err
}

func (s *server) ready(ctx context.Context) error {
	if err := s.sessions.ready(ctx); err != nil {
		return err
	}
	return s.checker.Check(ctx)
}

func (s *server) url() string { return "http://" + reachable(s.listener.Addr()) }

func (s *server) close() {
	s.stop()
	if s.listener != nil {
		s.listener.Close()
	}
	if s.gateway != nil {
		s.gateway.close()
	}
	if s.sessions != nil {
		if err := s.sessions.webrtc.Close(); err != nil {
			s.logger.Error("cannot close the ports of live video", "error", err)
		}
	}
	if err := s.storage.close(); err != nil {
		s.logger.Error("cannot close the database", "error", err)
	}
	if s.clock != nil {
		if err := s.clock.Close(); err != nil {
			s.logger.Error("cannot close the clock", "error", err)
		}
	}
	if s.lock != nil {
		s.lock.release()
	}
	s.traces.Close()
}
