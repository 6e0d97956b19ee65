package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/smithy-go/logging"
	"go.opentelemetry.io/otel/trace"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/adapter/ecs"
	"cutroom/shared/adapter/prometheus"
	"cutroom/shared/adapter/s3blob"
	"cutroom/shared/adapter/secrets"
	"cutroom/shared/adapter/sqsqueue"
	"cutroom/shared/adapter/stepfn"
	"cutroom/shared/app/c2pa/signing"
	"cutroom/shared/app/engineconfig"
	"cutroom/shared/app/setting"
	"cutroom/shared/app/tracing"
	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/job"
	"cutroom/shared/engine"
	"cutroom/shared/engine/enhance"
	"cutroom/shared/engine/ffmpeg"
	"cutroom/shared/platform/awsclient"
	"cutroom/shared/platform/boottime"
	"cutroom/shared/platform/clock"
	"cutroom/shared/service/worker"
)

const (
	// lease is how long a dead worker keeps a job (see ARCHITECTURE.md#the-life-of-a-job).
	lease         = 45 * time.Second
	progressEvery = 5 * time.Second  // each report is a paid write
	previewEvery  = 10 * time.Second // each preview is a paid write
	// checkEvery is the interval at which the worker checks whether a running job was cancelled.
	// Recording progress also checks, so a separate check costs a write only if an engine reports
	// no progress: $0.0075 for 1,000 minutes.
	checkEvery = 5 * time.Second
	guardEvery = 50 * time.Second // time between renewals of the task's protection
)

type settings struct {
	*setting.Environment
	table, usage, bucket, engine string
	queues                       map[job.Lane]string
	slots                        int
	signing                      signing.Settings
	catalog                      *catalog.Catalog
}

func readSettings(env *setting.Environment) (settings, error) {
	s := settings{
		Environment: env, table: env.Required("CUTROOM_JOBS_TABLE"), usage: env.Required("CUTROOM_USAGE_TABLE"),
		bucket: env.Required("CUTROOM_BUCKET"),
		queues: map[job.Lane]string{
			job.VideoLane: env.Required("CUTROOM_VIDEO_QUEUE"), job.ImageLane: env.Required("CUTROOM_IMAGE_QUEUE"),
		},
		engine: env.Optional("CUTROOM_ENGINE"),
	}
	s.slots = env.Number("CUTROOM_WORKERS", 1, 256, engineconfig.Parse(s.engine).Slots())
	s.catalog = env.Catalog()
	s.signing = signing.Settings{
		Mode: env.Optional("CUTROOM_C2PA"), Library: env.Optional("CUTROOM_C2PA_LIBRARY"),
		Certificates: env.Optional("CUTROOM_C2PA_CERTIFICATES"), Key: env.Optional("CUTROOM_C2PA_KEY"),
	}
	return s, env.Err()
}

func (s settings) lanes() map[job.Lane]int {
	return map[job.Lane]int{job.VideoLane: s.slots, job.ImageLane: s.slots}
}

type editing struct {
	tools    *ffmpeg.Tools
	engine   engine.Engine
	enhancer worker.Enhancer
	signing  *signing.Plan
}

func newEditing(ctx context.Context, s settings, logger *slog.Logger) (e editing, err error) {
	if e.tools, err = ffmpeg.Find(ctx, s.catalog.Limits); err != nil {
		return e, err
	}
	e.tools.Sandbox().LogLacks(logger)
	e.engine, err = engineconfig.New(engineconfig.Config{
		Setting: s.engine, Key: s.Optional("CUTROOM_ENGINE_KEY"), Tools: e.tools,
		Catalog: s.catalog, CatalogFile: s.Optional("CUTROOM_CATALOG"),
	})
	if err != nil {
		return e, err
	}
	if e.enhancer, err = newEnhancer(s.Environment); err != nil {
		return e, err
	}
	e.signing, err = signing.Find(ctx, signing.Config{
		Settings: s.signing, Engine: s.engine, Sandbox: e.tools.Sandbox(), Version: version(), Now: time.Now,
	})
	return e, err
}

func run(ctx context.Context, logger *slog.Logger) error {
	s, err := readSettings(setting.NewEnvironment(os.Getenv))
	if err != nil {
		return err
	}
	edits, err := newEditing(ctx, s, logger)
	if err != nil {
		return err
	}
	scratch, err := newScratch(s.Optional("CUTROOM_SCRATCH"))
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	metrics := prometheus.New()
	health, err := newHealth(s.Optional("CUTROOM_ADDR"), engine.HealthOf(edits.engine),
		metrics.Handler(s.Optional("CUTROOM_METRICS_KEY"), nil), logger)
	if err != nil {
		return err
	}
	defer health.stop()
	clients, err := config.LoadDefaultConfig(ctx, config.WithLogger(logging.Nop{}))
	if err != nil {
		return fmt.Errorf("read the AWS configuration: %w", err)
	}
	traces, err := tracing.New(ctx, os.Getenv, clients, "cutroom-worker", logger)
	if err != nil {
		return err
	}
	defer traces.Close()
	signer, err := newSigner(ctx, s, edits, scratch, clients, logger)
	if err != nil {
		return err
	}
	return work(ctx, s, edits, parts{
		scratch: scratch, metrics: metrics, health: health, clients: awsclient.Trace(clients, traces.Tracer()),
		tracer: traces.Tracer(), logger: logger, signer: signer,
	})
}

type parts struct {
	scratch string
	metrics *prometheus.Metrics
	health  *health
	clients aws.Config
	tracer  trace.Tracer
	logger  *slog.Logger
	// signer is nil if results are not signed.
	signer worker.Signer
}

// work takes jobs until the context ends, and then drains.
func work(ctx context.Context, s settings, edits editing, p parts) error {
	client := dynamo.NewClient(p.clients)
	clock, err := boottime.Open()
	if err != nil {
		return err
	}
	runs := dynamo.NewRuns(client, s.table).CountIn(dynamo.NewUsage(client, s.usage)).
		HoldIn(dynamo.NewBudgets(client, s.usage, clock, rand.Text))
	queue := sqsqueue.New(sqsqueue.Config{
		AWS: p.clients, URLs: s.queues, Jobs: runs, Tasks: stepfn.NewTasks(p.clients), Now: time.Now, Logger: p.logger,
	})
	defer queue.Close()
	guard, err := newGuard(os.Getenv("ECS_AGENT_URI"))
	if err != nil {
		return err
	}
	scraped := p.metrics.Worker()
	w := worker.New(worker.Config{
		Queue: queue, Runs: runs, Blobs: s3blob.New(p.clients, s.bucket), Engine: edits.engine,
		Catalog: s.catalog, Folder: p.scratch, Slots: s.lanes(), Guard: guard, GuardEvery: guardEvery,
		EngineHealth: engine.HealthOf(edits.engine), Prefetch: engine.CapabilitiesOf(edits.engine).Prefetch,
		Observer: scraped, Now: time.Now, Random: rand.Reader, Tracer: p.tracer,
		Logger: p.logger,
		Tools: worker.Tools{
			Prober: edits.tools, Posters: edits.tools, Enhancer: edits.enhancer, Signer: p.signer,
		},
		Pace: worker.Pace{
			Lease: lease, ProgressEvery: progressEvery, PreviewEvery: previewEvery, CheckEvery: checkEvery,
		},
	})
	scraped.Watch(w.Loads)
	var beside sync.WaitGroup
	defer beside.Wait()
	beside.Go(func() { beat(ctx, dynamo.NewWorkers(client, s.table, time.Now), s.lanes(), p.logger) })
	beside.Go(func() { p.health.watch(ctx, w.Stuck) })
	beside.Go(func() { engineconfig.Inspect(ctx, edits.engine, p.logger) })
	estimating := worker.Estimating{
		Engine: edits.engine, Catalog: s.catalog, Publisher: dynamo.NewEstimates(client, s.table), Now: time.Now,
		Logger: p.logger,
	}
	beside.Go(func() { estimating.Run(ctx) })
	p.logger.Info("the worker is accepting jobs", "slots", s.slots)
	w.Run(ctx)
	p.logger.Info("the worker has returned its jobs to the queue")
	return nil
}

// beat records regularly, until the context ends, that the lanes have a worker.
func beat(ctx context.Context, workers *dynamo.Workers, lanes map[job.Lane]int, logger *slog.Logger) {
	for running := true; running; running = clock.Wait(ctx, dynamo.BeatEvery) {
		for lane := range lanes {
			if err := workers.Beat(ctx, lane); err != nil && ctx.Err() == nil {
				logger.Warn("cannot record the worker's heartbeat", "lane", lane, "error", err)
			}
		}
	}
}

// newGuard returns a guard that protects a busy worker's task from scale-in. Outside ECS, it returns nil.
func newGuard(agentURI string) (worker.Guard, error) {
	if agentURI == "" {
		return nil, nil
	}
	protection, err := ecs.NewTaskProtection(agentURI, nil)
	if err != nil {
		return nil, fmt.Errorf("ECS_AGENT_URI: %w", err)
	}
	return protection, nil
}

func newEnhancer(env *setting.Environment) (worker.Enhancer, error) {
	enhancer, err := enhance.FromSettings(
		env.Optional("CUTROOM_ENHANCE_URL"), env.Optional("CUTROOM_ENHANCE_MODEL"), env.Optional("CUTROOM_ENHANCE_KEY"))
	if enhancer == nil {
		return nil, err // avoids a typed nil
	}
	return enhancer, err
}

// newSigner returns the signer for results, or nil if results are not signed. All workers share the
// service's own identity, which is in Secrets Manager.
func newSigner(
	ctx context.Context, s settings, edits editing, scratch string, clients aws.Config, logger *slog.Logger,
) (worker.Signer, error) {
	parts := signing.Parts{Folder: scratch, Now: time.Now, Logger: logger}
	if arn := s.Optional("CUTROOM_C2PA_SECRET_ARN"); arn != "" {
		parts.Store = secrets.NewGenerated(clients, arn)
	}
	signer, err := edits.signing.Signer(ctx, parts)
	if err != nil || signer == nil {
		return signer, err
	}
	certificates, err := edits.signing.Certificates(ctx, parts.Store)
	if err == nil {
		err = dynamo.NewSigners(dynamo.NewClient(clients), s.table).Add(ctx, certificates)
	}
	if err != nil {
		// Results are still signed.
		logger.Warn("cannot publish the certificates; verifiers will not recognize the signatures", "error", err)
	}
	return signer, nil
}

var built string

func version() string {
	if built != "" {
		return built
	}
	if build, ok := debug.ReadBuildInfo(); ok && build.Main.Version != "(devel)" {
		return build.Main.Version
	}
	return ""
}

// newScratch makes a folder for this worker. Its path is absolute, because ffmpeg runs in subfolders.
func newScratch(parent string) (string, error) {
	if parent == "" {
		parent = os.TempDir()
	}
	parent, err := filepath.Abs(parent)
	if err == nil {
		err = os.MkdirAll(parent, 0o700)
	}
	if err != nil {
		return "", fmt.Errorf("CUTROOM_SCRATCH: %w", err)
	}
	folder, err := os.MkdirTemp(parent, "cutroom-worker-")
	if err != nil {
		return "", fmt.Errorf("CUTROOM_SCRATCH: %w", err)
	}
	return folder, nil
}
