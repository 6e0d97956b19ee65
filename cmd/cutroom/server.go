package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"cutroom/cmd/cutroom/command"
	"cutroom/shared/app/engines"
	"cutroom/shared/app/records"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/file"
	"cutroom/shared/domain/idempotency"
	"cutroom/shared/domain/job"
	"cutroom/shared/domain/ratelimit"
	"cutroom/shared/engine/ffmpeg"
	"cutroom/shared/platform/clock"
	"cutroom/shared/platform/httpserver"
	"cutroom/shared/platform/otlp"
	"cutroom/shared/platform/reserve"
	"cutroom/shared/service/api"
	"cutroom/shared/service/console"
	"cutroom/shared/service/health"
	"cutroom/shared/service/worker"
)

const (
	// lease is how long a job of a worker that hangs stays with it.
	lease = 30 * time.Second
	// progressEvery is how often progress is recorded; a write is cheap here.
	progressEvery = 200 * time.Millisecond
	// checkEvery is how often a run looks whether its job was cancelled.
	checkEvery = time.Second
	// shutdownTime is how long requests under way may take after a stop.
	shutdownTime = 10 * time.Second
	// reserved is the room that the data folder holds for when the disk is full, in
	// bytes: more than the write-ahead log and the database take for any delete.
	reserved = 8 << 20
	// devAccount is the account of the development key.
	devAccount = "dev"
)

// server is the one-machine server: everything in one process over one folder.
type server struct {
	logger *slog.Logger
	lock   *folderLock
	storage
	reserve *reserve.Reserve
	// clock tells the time of all that is kept and compared with it. What is only
	// ever measured goes by the machine's, whose differences nobody sets.
	clock    *clock.Clock
	checker  *health.Checker
	listener net.Listener
	http     *httpserver.Server
	worker   *worker.Worker
	sweeper  *job.Sweeper
	files    *file.Sweeper
	tokens   *credential.TokenSweeper
	gateway  *inference
	sessions *sessions
	webhooks webhooks
	traces   otlp.Traces
	// devKey is the development key.
	devKey string
	// keepUnknown is for how long bytes are kept that no record knows.
	keepUnknown time.Duration
	// stopping ends when the server stops, before its requests do.
	stopping context.Context
	stop     context.CancelFunc
}

// newServer opens the data folder, recovers what a crash left, and listens. On
// error everything is closed again.
func newServer(ctx context.Context, c *devCommand, machine machineClocks, logger *slog.Logger) (s *server, err error) {
	s = &server{logger: logger, keepUnknown: c.keepUnknown()}
	s.stopping, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if s.traces, err = otlp.FromEnvironment(ctx, os.Getenv, "cutroom", logger); err != nil {
		return s, err
	}
	live, catalogFile, err := c.liveCatalog()
	if err != nil {
		return s, err
	}
	catalog := live.Catalog()
	tiers, err := c.table()
	if err != nil {
		return s, err
	}
	enhancer, err := c.enhancer()
	if err != nil {
		return s, err
	}
	tools, err := ffmpeg.Find(ctx, catalog.Limits)
	if err != nil {
		return s, err
	}
	tools.Fence().Tell(logger)
	edits, err := engines.New(engines.Config{Setting: c.Engine, Key: c.EngineKey, Tools: tools})
	if err != nil {
		return s, err
	}
	if err := os.MkdirAll(c.Data, 0o700); err != nil {
		return s, fmt.Errorf("CUTROOM_DATA: %w", err)
	}
	if s.lock, err = lockFolder(c.Data); err != nil {
		return s, fmt.Errorf("CUTROOM_DATA: %w", err)
	}
	// A full disk has this room at least, to start and to delete.
	s.reserve = reserve.Open(filepath.Join(c.Data, "reserve"), reserved)
	s.reserve.ReleaseIfFull()
	if s.clock, err = openClock(c.dataFlag, machine, logger); err != nil {
		return s, fmt.Errorf("CUTROOM_DATA: %w", err)
	}
	now := s.clock.Now
	if s.storage, err = openStorage(ctx, c.dataFlag, records.Options{Now: now, Settled: s.clock.Settled, Reserve: s.reserve}, logger); err != nil {
		return s, fmt.Errorf("CUTROOM_DATA: %w", err)
	}
	blobs := s.blobs
	s.checker = s.storage.health(logger)
	// Absolute, as the programs that edit run in folders of their own.
	scratch, err := filepath.Abs(filepath.Join(c.Data, "scratch"))
	if err := errors.Join(err, emptyFolder(scratch)); err != nil {
		return s, fmt.Errorf("CUTROOM_DATA: %w", err)
	}
	if s.devKey, err = ensureDevKey(ctx, c, s.records.Keys, now()); err != nil {
		return s, err
	}

	jobs := s.records.Jobs
	slots := map[job.Lane]int{job.VideoLane: c.workers(), job.ImageLane: c.workers()}
	secret, err := ensureSecret(c)
	if err != nil {
		return s, err
	}
	service := job.NewService(job.Config{
		Store: jobs, Now: now, Random: rand.Reader, Workers: slots, Cursors: job.NewCursors(secret), Watcher: jobs, Logger: logger,
	})
	s.sweeper = &job.Sweeper{
		Store: jobs, Blobs: blobs, Now: now, Settled: s.clock.Settled, Logger: logger, ResultAge: service.ResultAge, RecordAge: service.RecordAge,
	}
	s.tokens = &credential.TokenSweeper{Store: s.records.Keys, Now: now, Settled: s.clock.Settled, Logger: logger}
	files := file.NewService(file.Config{
		Store: s.records.Files, Blobs: blobs, IDs: file.NewIDs(now, rand.Reader), Cursors: file.NewCursors(secret), Now: now,
		Promises: s.records.Files,
	})
	uploads := api.NewUploadURLs(secret, now)
	s.files = &file.Sweeper{Store: s.records.Files, Blobs: blobs, Now: now, Settled: s.clock.Settled, Logger: logger}
	if s.webhooks, err = newWebhooks(c, s.records, secret, now, logger); err != nil {
		return s, err
	}
	if err := s.recover(ctx); err != nil {
		return s, fmt.Errorf("recover: %w", err)
	}

	if s.listener, err = listen("CUTROOM_ADDR", c.Addr); err != nil {
		return s, err
	}
	metricsKey, err := ensureMetricsKey(c)
	if err != nil {
		return s, err
	}
	from, err := newCallers(c.TrustedProxies)
	if err != nil {
		return s, err
	}
	failures := ratelimit.NewFailures(time.Now)
	authenticator, limiter := credential.NewAuthenticator(s.records.Keys, tiers, now), ratelimit.New(time.Now)
	authenticator.Guard(failures)
	if s.gateway, err = newInference(c, inferenceParts{
		records: s.records, ready: s.checker.Check, now: now, catalog: live, file: catalogFile, authenticator: authenticator, limiter: limiter,
		callers: from, failures: failures, metricsKey: metricsKey, tracer: s.traces.Tracer(), logger: logger,
	}); err != nil {
		return s, err
	}
	if s.sessions, err = newSessions(sessionParts{
		now: now, records: s.records, catalog: catalog, authenticator: authenticator, files: files, blobs: blobs, usage: s.gateway.writer,
		pictures: tools, enhancer: enhancer, origins: c.Origins, logger: logger,
	}); err != nil {
		return s, err
	}
	s.warnOfKey(c)
	runs := s.gateway.metrics.Worker()
	s.worker = worker.New(worker.Config{
		Queue: s.records.Queue, Runs: jobs, Blobs: blobs, Engine: edits, Prober: tools, Catalog: catalog,
		Enhancer: enhancer, Folder: scratch, Slots: slots, Lease: lease, ProgressEvery: progressEvery, CheckEvery: checkEvery,
		EngineHealth: engines.Health(edits), Prefetch: !engines.IsPreview(c.Engine), Observer: runs,
		Now: now, Random: rand.Reader, Tracer: s.traces.Tracer(), Logger: logger,
	})
	runs.Watch(s.worker.Loads)
	s.gateway.metrics.WatchState(stateOf(s.records, s.sessions.records, now))
	pages, err := newConsole(catalog, int64(c.MaxUpload), s.gateway.listener.Addr(), c.PublicInferenceURL)
	if err != nil {
		return s, err
	}
	s.http = httpserver.New(httpserver.Config{Logger: logger, Tracer: s.traces.Tracer(), Observer: s.gateway.metrics.Surface("media"), OnPanic: api.InternalError(c.Origins), Handler: from.named(pages.Beside(s.sessions.beside(api.New(api.Config{
		Catalog: catalog, KnowsModel: live.Knows, Jobs: service, Authenticator: authenticator,
		Idempotency: &idempotency.Service{Store: s.records.IdempotencyKeys, Now: now},
		Limiter:     limiter, Minter: &credential.Minter{Store: s.records.Keys, Random: rand.Reader, Now: now},
		Keys:    &credential.KeyService{Store: s.records.Keys, Random: rand.Reader, Now: now},
		Origins: c.Origins, Stopping: s.stopping, ConsoleURL: "." + console.Path + "/",
		InferenceURL: cmp.Or(c.PublicInferenceURL, "http://"+reachable(s.gateway.listener.Addr())),
		Blobs:        blobs, Files: files, Signer: uploads, UploadURLs: uploads, MaxUpload: int64(c.MaxUpload),
		Intake: &file.Intake{
			Reservations: s.records.Files, Free: func() (int64, error) { return blobs.Room(int64(c.DiskReserve)) },
			Most: c.Uploads, NewID: rand.Text, Now: now,
		},
		WebhookTargets: s.webhooks.targets, WebhookLog: s.webhooks.log, WebhookSecrets: s.webhooks.secrets,
		Sessions: s.sessions.records, QuotaReads: ratelimit.NewWindow(time.Now), Ready: s.ready, Logger: logger,
	}))))})
	return s, nil
}

// recover mends what a crash left behind: this process holds the folder's lock,
// so that every lease is a dead worker's, every unsettled claim a dead request's,
// and every reservation a dead upload's. Unknown blobs are broken uploads, as far
// as anybody can tell.
func (s *server) recover(ctx context.Context) error {
	if err := s.records.Queue.RecoverLeases(ctx); err != nil {
		return err
	}
	if err := s.records.IdempotencyKeys.Abandon(ctx, s.clock.Now()); err != nil {
		return err
	}
	// On a full disk they run out by themselves.
	if err := s.records.Files.ReleaseAll(ctx); err != nil && !fault.Is(err, fault.StorageFull) {
		return err
	}
	if err := s.sweeper.Expire(ctx); err != nil {
		return err
	}
	if err := s.putBackKnown(ctx, s.logger); err != nil {
		return err
	}
	unknown, err := s.setAsideUnknown(ctx, s.sweeper, s.files)
	if err != nil {
		return err
	}
	if unknown > 0 {
		s.logger.Warn("files that no record knows were set aside; cutroom doctor --repair lists them", "blobs", unknown, "kept_for", s.keepUnknown)
	}
	if err := s.sweeper.Sweep(ctx); err != nil {
		return err
	}
	return s.files.Sweep(ctx)
}

// run serves until the context ends, then stops in order: no new requests, jobs
// in hand returned, requests under way finished.
func (s *server) run(ctx context.Context) error {
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	running.Go(func() { s.worker.Run(background) })
	running.Go(func() { s.sweeper.Run(background) })
	running.Go(func() { s.files.Run(background) })
	running.Go(func() { s.tokens.Run(background) })
	running.Go(func() { s.watchStorage(background) })
	running.Go(func() { s.clock.Run(background, s.records.ShiftTimes) })
	running.Go(func() { s.webhooks.loop.Run(background) })
	running.Go(func() { s.gateway.followCatalog(background) })
	var live sync.WaitGroup
	live.Go(func() { s.sessions.server.Run(background) })
	// What requests and sessions use until their ends is still written.
	writing, stopWriting := context.WithCancel(context.WithoutCancel(ctx))
	running.Go(func() { s.gateway.writer.Run(writing) })
	defer running.Wait()
	defer stopWriting()
	defer live.Wait()
	defer stop()

	served := make(chan error, 2)
	go func() { served <- s.http.Serve(s.listener) }()
	go func() { served <- s.gateway.http.Serve(s.gateway.listener) }()
	select {
	case err := <-served:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	s.logger.Info("stopping")
	s.stop()
	stop()
	shutdown, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
	defer cancel()
	var ending sync.WaitGroup
	for _, surface := range []*httpserver.Server{s.http, s.gateway.http} {
		ending.Go(func() {
			if err := surface.Shutdown(shutdown); err != nil {
				s.logger.Warn("requests were cut off", "error", err)
			}
		})
	}
	ending.Wait()
	return nil
}

// ready reports why requests cannot be served.
func (s *server) ready(ctx context.Context) error {
	if err := s.sessions.ready(ctx); err != nil {
		return err
	}
	return s.checker.Check(ctx)
}

// url is where a client on this machine finds the media service.
func (s *server) url() string { return "http://" + reachable(s.listener.Addr()) }

// close releases what newServer took.
func (s *server) close() {
	s.stop()
	if s.listener != nil {
		s.listener.Close()
	}
	if s.gateway != nil {
		s.gateway.close()
	}
	if err := s.storage.close(); err != nil {
		s.logger.Error("close the database", "error", err)
	}
	if s.clock != nil {
		if err := s.clock.Close(); err != nil {
			s.logger.Error("close the clock", "error", err)
		}
	}
	if s.lock != nil {
		s.lock.release()
	}
	s.traces.Close()
}

// ensureDevKey makes the development key work and gives it: the one that is
// set, else the one that the data folder keeps, else a new one, also when the
// kept one was revoked.
func ensureDevKey(ctx context.Context, c *devCommand, store credential.Store, now time.Time) (string, error) {
	if c.DevKey != "" {
		works, err := ensureKey(ctx, store, c.DevKey, now)
		if err == nil && !works {
			err = errors.New("the key was revoked; choose another")
		}
		if err != nil {
			return "", fmt.Errorf("CUTROOM_DEV_KEY: %w", err)
		}
		return c.DevKey, nil
	}
	path := command.DevKeyFile(c.Data)
	kept, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read the development key: %w", err)
	}
	if secret := strings.TrimSpace(string(kept)); credential.CheckSecret(secret) == nil {
		if works, err := ensureKey(ctx, store, secret, now); err != nil || works {
			return secret, err
		}
	}
	secret, err := credential.NewSecret(rand.Reader)
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(path, []byte(secret+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("keep the development key: %w", err)
	}
	_, err = ensureKey(ctx, store, secret, now)
	return secret, err
}

const (
	// fewestCharacters is how short the random part of a development key may be for
	// a server that others reach, and fewestKinds how few different characters it may
	// have: what is below is a word rather than a key.
	fewestCharacters, fewestKinds = 20, 10
)

// isWeakKey reports whether a development key may be guessed.
func isWeakKey(secret string) bool {
	random := strings.TrimPrefix(secret, "ck_")
	kinds := map[rune]bool{}
	for _, character := range random {
		kinds[character] = true
	}
	return len(random) < fewestCharacters || len(kinds) < fewestKinds
}

// warnOfKey says that a fixed key is weak for a server that others reach.
func (s *server) warnOfKey(c *devCommand) {
	isOpen := !isLoopback(s.listener.Addr()) || !isLoopback(s.gateway.listener.Addr())
	if isOpen && c.DevKey != "" && isWeakKey(c.DevKey) {
		s.logger.Warn("CUTROOM_DEV_KEY can be guessed, and other machines reach this server: leave it out, and a strong one is made")
	}
}

// emptyFolder makes a folder, or removes all that it holds: a full disk has no room
// for another.
func emptyFolder(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	children, err := os.ReadDir(path)
	for _, child := range children {
		err = errors.Join(err, os.RemoveAll(filepath.Join(path, child.Name())))
	}
	return err
}

// ensureKey makes a development key known, and reports whether it works: one
// that was revoked stays so.
func ensureKey(ctx context.Context, store credential.Store, secret string, now time.Time) (works bool, err error) {
	key, err := credential.NewKey(secret, devAccount, credential.DevTier, "development key", now)
	if err != nil {
		return false, err
	}
	key.Admin = true
	// Looked for first, as a full disk takes no write.
	known, err := store.FindKey(ctx, key.Hash)
	if fault.Is(err, fault.NotFound) {
		if err := store.CreateKey(ctx, key); !fault.Is(err, fault.Conflict) {
			return err == nil, err
		}
		known, err = store.FindKey(ctx, key.Hash)
	}
	if err == nil && known.Account != devAccount {
		err = fmt.Errorf("the key is the account %s's already; choose another", known.Account)
	}
	return err == nil && known.RevokedAt.IsZero(), err
}
