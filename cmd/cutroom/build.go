package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"cutroom/shared/adapter/sqlite"
	"cutroom/shared/adapter/webhookhttp"
	"cutroom/shared/app/c2pa/signing"
	"cutroom/shared/app/c2pa/verifying"
	"cutroom/shared/app/engineconfig"
	"cutroom/shared/app/webrtc"
	"cutroom/shared/domain/batch"
	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/file"
	"cutroom/shared/domain/idempotency"
	"cutroom/shared/domain/job"
	"cutroom/shared/domain/media/sniff"
	"cutroom/shared/domain/ratelimit"
	"cutroom/shared/engine"
	"cutroom/shared/engine/ffmpeg"
	"cutroom/shared/platform/boottime"
	"cutroom/shared/platform/httpserver"
	"cutroom/shared/platform/otlp"
	"cutroom/shared/platform/reserve"
	"cutroom/shared/service/api"
	"cutroom/shared/service/batches"
	"cutroom/shared/service/console"
	"cutroom/shared/service/gateway"
	"cutroom/shared/service/worker"
)

// build builds the server in stages, each of which needs the earlier stages. Stages that only read
// settings run first, so an invalid setting changes nothing on disk.
func (s *server) build(ctx context.Context, c *devCommand, machine machineClocks) error {
	var err error
	if s.traces, err = otlp.FromEnvironment(ctx, os.Getenv, "cutroom", s.logger); err != nil {
		return err
	}
	p, err := newParts(ctx, c, machine)
	if err != nil {
		return err
	}
	p.tools.Sandbox().LogLacks(s.logger)
	if err := s.openData(ctx, c, machine, p); err != nil {
		return err
	}
	if err := s.buildServices(c, p); err != nil {
		return err
	}
	if err := s.recover(ctx); err != nil {
		return fmt.Errorf("recover: %w", err)
	}
	if s.listener, err = listen("CUTROOM_ADDR", c.Addr); err != nil {
		return err
	}
	if err := s.buildGateway(c, p); err != nil {
		return err
	}
	if err := s.buildSessions(ctx, c, p); err != nil {
		return err
	}
	s.warnOfKey(c)
	s.buildWorker(c, p)
	return s.buildMedia(c, p)
}

const scratchName = "scratch"

type parts struct {
	live        *catalog.Live
	catalogFile catalog.File
	catalog     *catalog.Catalog
	tiers       credential.Tiers
	enhancer    worker.Enhancer
	tools       *ffmpeg.Tools
	engine      engine.Engine
	liveEngine  engine.LiveEngine
	signing     *signing.Plan
	callers     callers

	secret   []byte
	tokenKey string
	// scratch is the absolute path of the engines' working folder.
	scratch string
	// signer is nil if results are not signed.
	signer worker.Signer
	// verifier verifies files. It is set even if results are not signed.
	verifier *verifying.Reader

	jobs          *job.Service
	ids           *file.IDs
	files         *file.Service
	intake        *file.Intake
	authenticator *credential.Authenticator
	limiter       *ratelimit.Limiter
	failures      *ratelimit.Failures
}

func newParts(ctx context.Context, c *devCommand, machine machineClocks) (*parts, error) {
	p := &parts{}
	var err error
	if p.live, p.catalogFile, err = c.liveCatalog(); err != nil {
		return nil, err
	}
	p.catalog = p.live.Catalog()
	if p.tiers, err = c.table(); err != nil {
		return nil, err
	}
	if p.enhancer, err = c.enhancer(); err != nil {
		return nil, err
	}
	if p.callers, err = newCallers(c.TrustedProxies); err != nil {
		return nil, err
	}
	if p.tools, err = ffmpeg.Find(ctx, p.catalog.Limits); err != nil {
		return nil, err
	}
	p.engine, err = engineconfig.New(engineconfig.Config{
		Setting: c.Engine, Key: c.EngineKey, Tools: p.tools, Catalog: p.catalog, CatalogFile: c.Catalog,
	})
	if err != nil {
		return nil, err
	}
	if p.liveEngine, err = engineconfig.NewLive(c.LiveEngine, c.Engine); err != nil {
		return nil, err
	}
	p.signing, err = signing.Find(ctx, signing.Config{
		Settings: c.signingFlags.settings(), Engine: c.Engine, Sandbox: p.tools.Sandbox(), Version: version(), Now: machine.wall,
	})
	return p, err
}

func (s *server) openData(ctx context.Context, c *devCommand, machine machineClocks, p *parts) error {
	if err := s.openFolder(ctx, c, machine, p); err != nil {
		return fmt.Errorf("CUTROOM_DATA: %w", err)
	}
	s.checker = s.storage.health(p.scratch, s.logger)
	var err error
	if s.devKey, err = ensureDevKey(ctx, c, s.records.Keys(), s.clock.Now()); err != nil {
		return err
	}
	if p.tokenKey, err = kept("", filepath.Join(c.Data, tokenKeyName)); err != nil {
		return err
	}
	if p.secret, err = ensureSecret(c); err != nil {
		return err
	}
	identities := signing.File(filepath.Join(c.Data, signerName))
	p.signer, err = p.signing.Signer(ctx, signing.Parts{
		Store: identities, Folder: p.scratch, Now: s.clock.Now, Logger: s.logger,
	})
	p.verifier = verifying.NewReader(verifying.Config{
		Library: c.C2PALibrary, Sandbox: p.tools.Sandbox(), Signers: identities.Certificates,
		Certificates: c.C2PACertificates, Logger: s.logger,
	})
	return err
}

func (s *server) openFolder(ctx context.Context, c *devCommand, machine machineClocks, p *parts) (err error) {
	if err := os.MkdirAll(c.Data, 0o700); err != nil {
		return err
	}
	if s.lock, err = lockFolder(c.Data); err != nil {
		return err
	}
	// With reserved disk space, the server can start and delete files even on a full disk.
	s.reserve = reserve.Open(filepath.Join(c.Data, "reserve"), reserved)
	s.reserve.ReleaseIfFull()
	if s.clock, err = openClock(c.dataFlag, machine, s.logger); err != nil {
		return err
	}
	options := sqlite.Options{
		Now: s.clock.Now, Settled: s.clock.Settled, Reserve: s.reserve,
		Free: func() (int64, error) { return s.blobs.Available(int64(c.DiskReserve)) },
	}
	if c.spare() > 0 {
		options.AccountLeases = c.workers()
	}
	if s.storage, err = openStorage(ctx, c.dataFlag, options); err != nil {
		return err
	}
	// Lock the blob folder only now, because the first start has just created it.
	if err := s.lock.lockEntries(c.Data); err != nil {
		return err
	}
	// The path must be absolute, because ffmpeg runs in other folders.
	p.scratch, err = filepath.Abs(filepath.Join(c.Data, scratchName))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(p.scratch, 0o700); err != nil {
		return err
	}
	// The folder may be a symbolic link to a folder that another server uses, so lock its target.
	if err := s.lock.lockFolderItself(p.scratch); err != nil {
		return fmt.Errorf("the folder %s is in use by another server: %w", p.scratch, err)
	}
	// In a container, this may be the only writable folder.
	p.tools.Folder = p.scratch
	return emptyScratch(p.scratch)
}

func (s *server) buildServices(c *devCommand, p *parts) (err error) {
	now, settled := s.clock.Now, s.clock.Settled
	machine, err := boottime.Open()
	if err != nil {
		return err
	}
	budgets := s.records.Budgets(machine)
	s.budgets = budget.NewManager(budget.ManagerConfig{
		Store: budgets, Machine: machine, Now: now, NewID: rand.Text, Logger: s.logger,
		Warn: func(_ budget.Counter, percent int) { s.gateway.metrics.BudgetWarned(percent) },
	})
	p.jobs = job.NewService(job.Config{
		Store: s.records.Jobs().HoldIn(budgets), Now: now, Random: rand.Reader, Cursors: job.NewCursors(p.secret),
		Workers: inEachLane(c.workers()), Spare: c.spare(), Priorities: true,
		Watcher: s.records.Jobs(), Queues: s.records.Jobs(), Estimates: s.records.Estimates(), Logger: s.logger,
		Budgets: s.budgets, MaxLength: p.catalog.Limits.VideoDuration,
	})
	p.ids = file.NewIDs(now, rand.Reader)
	p.files = file.NewService(file.Config{
		Store: s.records.Files(), Blobs: s.blobs, IDs: p.ids, Cursors: file.NewCursors(p.secret),
		Now: now, Extender: s.records.Files(),
	})
	resultAge, recordAge := p.jobs.Ages()
	s.sweeper = &job.Sweeper{
		Store: s.records.Jobs(), Blobs: s.blobs, Now: now, Settled: settled, Logger: s.logger,
		ResultAge: resultAge, RecordAge: recordAge,
	}
	s.files = &file.Sweeper{Store: s.records.Files(), Blobs: s.blobs, Now: now, Settled: settled, Logger: s.logger}
	s.ended = &batch.Sweeper{
		Store: s.records.Batches(), Blobs: s.blobs, Shelf: s.blobs, Now: now, Settled: settled,
		Storage: batch.Storage{Reservations: s.records.Files(), Now: now},
	}
	p.intake = &file.Intake{
		Reservations: s.records.Files(), Free: func() (int64, error) { return s.blobs.Available(int64(c.DiskReserve)) },
		NewID: rand.Text, Now: now,
	}
	s.tokens = &credential.TokenSweeper{Store: s.records.Keys(), Now: now, Settled: settled, Logger: s.logger}
	p.authenticator = credential.NewAuthenticator(s.records.Keys(), p.tiers, now)
	p.limiter, p.failures = ratelimit.New(time.Now), ratelimit.NewFailures(time.Now)
	p.authenticator.Guard(p.failures)
	s.webhooks, err = newWebhooks(c, s.records, budgets, p.catalog.Currency, p.secret, now, s.logger)
	return err
}

func (s *server) buildGateway(c *devCommand, p *parts) error {
	metricsKey, err := ensureMetricsKey(c)
	if err != nil {
		return err
	}
	s.gateway, err = newInference(c, inferenceParts{
		records: s.records, ready: s.checker.Check, now: s.clock.Now, catalog: p.live, file: p.catalogFile,
		authenticator: p.authenticator, limiter: p.limiter, callers: p.callers, failures: p.failures,
		budgets: s.budgets, metricsKey: metricsKey, tracer: s.traces.Tracer(), logger: s.logger,
		batches: &gateway.Batches{
			Service: batch.NewService(batch.Config{
				Store: s.records.Batches(), Files: p.files, Blobs: s.blobs, IDs: p.ids, Now: s.clock.Now,
				Storage: s.ended.Storage,
				Wake:    func(context.Context, batch.Batch) { s.batches.Wake() },
			}),
			Files: p.files, Blobs: s.blobs, Intake: p.intake, Detect: sniff.Any, MaxUpload: int64(c.MaxUpload),
		},
	})
	if err != nil {
		return err
	}
	s.batches = batches.New(batches.Config{
		Store: s.records.Batches(), Sweeper: s.ended, Files: p.files, Blobs: s.blobs, Storage: s.ended.Storage,
		Keys: p.authenticator, Gateway: s.gateway.gateway, Free: p.intake.Free,
		Now: s.clock.Now, NewID: rand.Text, Settled: s.clock.Settled, Logger: s.logger,
	})
	return nil
}

func (s *server) buildSessions(ctx context.Context, c *devCommand, p *parts) error {
	transport, err := webrtc.Open(ctx, webrtc.Config{
		Addr: c.RTCAddr, Public: c.RTCPublic, Relays: c.RTCTURN, RelaySecret: c.RTCSecret,
		Sandbox: p.tools.Sandbox(), Origins: c.Origins, Now: s.clock.Now, Logger: s.logger,
	})
	if err != nil {
		return err
	}
	s.sessions, err = newSessions(sessionParts{
		now: s.clock.Now, records: s.records, catalog: p.catalog, authenticator: p.authenticator, files: p.files,
		blobs: s.blobs, usage: s.gateway.writer, budgets: s.budgets, pictures: p.tools, enhancer: p.enhancer, origins: c.Origins,
		engine: p.liveEngine, webrtc: transport, logger: s.logger,
	})
	if err != nil {
		return errors.Join(err, transport.Close())
	}
	s.gateway.metrics.WatchState(stateOf(s.records, s.sessions.records, s.clock.Now))
	return nil
}

func (s *server) buildWorker(c *devCommand, p *parts) {
	runs := s.gateway.metrics.Worker()
	s.worker = worker.New(worker.Config{
		Queue: s.records.Queue(), Runs: s.records.Jobs(), Blobs: s.blobs, Engine: p.engine, Catalog: p.catalog,
		Free: p.intake.Free, Folder: p.scratch, Slots: inEachLane(c.workers() + c.spare()),
		EngineHealth: engine.HealthOf(p.engine), Prefetch: engine.CapabilitiesOf(p.engine).Prefetch, Observer: runs, Now: s.clock.Now,
		Random: rand.Reader, Tracer: s.traces.Tracer(), Logger: s.logger,
		Tools: worker.Tools{
			Prober: p.tools, Posters: p.tools, Enhancer: p.enhancer, Signer: p.signer,
		},
		Pace: worker.Pace{
			Lease: lease, ProgressEvery: progressEvery, PreviewEvery: previewEvery, CheckEvery: checkEvery,
		},
	})
	runs.Watch(s.worker.Loads)
	s.estimating = worker.Estimating{
		Engine: p.engine, Catalog: p.catalog, Publisher: s.records.Estimates(), Now: s.clock.Now, Logger: s.logger,
	}
}

func (s *server) buildMedia(c *devCommand, p *parts) error {
	pages, err := newConsole(p.catalog, int64(c.MaxUpload), s.gateway.listener.Addr(), c.PublicInferenceURL)
	if err != nil {
		return err
	}
	config := s.apiConfig(c, p)
	openAI := api.New(config, api.OpenAIImages, api.OpenAIVideos, api.OpenAIContent, api.Shares)
	for _, pattern := range api.OpenAIPaths {
		s.gateway.gateway.Serve(pattern, openAI)
	}
	handler := pages.Beside(s.sessions.beside(api.New(config, api.AllGroups()...)))
	s.http = httpserver.New(httpserver.Config{
		Value:  p.callers.value,
		Logger: s.logger, QuietReads: c.readAlong, Tracer: s.traces.Tracer(),
		Observer: s.gateway.metrics.Surface("media"),
		OnPanic:  api.InternalError(c.Origins), Handler: handler,
	})
	return nil
}

func (s *server) apiConfig(c *devCommand, p *parts) api.Config {
	now, keys := s.clock.Now, s.records.Keys()
	uploads := api.NewUploadURLs(p.secret, now)
	return api.Config{
		Catalog: p.catalog, KnowsModel: p.live.Knows, Authenticator: p.authenticator, Limiter: p.limiter,
		Idempotency: &idempotency.Service{Store: s.records.IdempotencyKeys(), Now: now},
		Origins:     c.Origins, Stopping: s.stopping, Ready: s.ready, Logger: s.logger,
		Blobs: s.blobs, Scratch: p.scratch, MaxUpload: int64(c.MaxUpload),
		JobRoutes: api.JobRoutes{Jobs: p.jobs, Shares: job.NewShares(p.secret, now), WebhookTargets: s.webhooks.targets,
			Fetch: webhookhttp.NewFetcher(webhookhttp.Config{Targets: s.webhooks.targets})},
		FileRoutes: api.FileRoutes{Files: p.files, Intake: p.intake, Posters: p.tools, Signer: uploads, UploadURLs: uploads},
		C2PARoutes: api.C2PARoutes{Verifier: p.verifier},
		AccountRoutes: api.AccountRoutes{
			Minter: &credential.Minter{
				Store: keys, Random: rand.Reader, Now: now, Secret: func(context.Context) ([]byte, error) { return []byte(p.tokenKey), nil },
			},
			Keys:    &credential.KeyService{Store: keys, Random: rand.Reader, Now: now},
			Budgets: s.budgets, AuditLog: s.records.Audit(),
		},
		SessionRoutes: api.SessionRoutes{Sessions: s.sessions.records, LiveVideo: s.sessions.webrtc.For() != nil},
		WebhookRoutes: api.WebhookRoutes{WebhookLog: s.webhooks.log, WebhookSecrets: s.webhooks.secrets},
		InfoRoutes: api.InfoRoutes{
			Engine:       api.EngineFacts{Name: engineconfig.Parse(c.Engine).Engine(), Enhances: c.EnhanceURL != ""},
			InferenceURL: cmp.Or(c.PublicInferenceURL, s.gateway.url()), ConsoleURL: "." + console.Path + "/",
		},
	}
}
