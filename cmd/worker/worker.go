package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/smithy-go/logging"

	"cutroom/shared/adapter/cloudwatch"
	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/adapter/ecs"
	"cutroom/shared/adapter/prometheus"
	"cutroom/shared/adapter/s3blob"
	"cutroom/shared/adapter/sqsqueue"
	"cutroom/shared/adapter/stepfn"
	"cutroom/shared/app/engines"
	"cutroom/shared/app/setting"
	"cutroom/shared/app/tracing"
	"cutroom/shared/domain/job"
	"cutroom/shared/engine"
	"cutroom/shared/engine/enhance"
	"cutroom/shared/engine/ffmpeg"
	"cutroom/shared/platform/awsclient"
	"cutroom/shared/service/worker"
)

const (
	// lease is how long a worker that died keeps a job
	// (ARCHITECTURE.md#the-life-of-a-job: within a minute).
	lease = 45 * time.Second
	// progressEvery is how often progress is recorded; each record is a paid write.
	progressEvery = 5 * time.Second
	// checkEvery is how long an engine goes on after its job was cancelled.
	// Recording progress checks too, so a separate check costs a write only while
	// an engine reports no progress: $0.0075 for 1,000 minutes of that.
	checkEvery = 5 * time.Second
	// guardEvery is how often the task's protection is renewed.
	guardEvery = 50 * time.Second
	// shareEvery is how often the share of busy slots is logged.
	shareEvery = time.Minute
)

// run works until the context ends, and then drains.
func run(ctx context.Context, logger *slog.Logger) error {
	env := setting.NewEnvironment(os.Getenv)
	table, bucket := env.Required("CUTROOM_JOBS_TABLE"), env.Required("CUTROOM_BUCKET")
	queues := map[job.Lane]string{
		job.VideoLane: env.Required("CUTROOM_VIDEO_QUEUE"), job.ImageLane: env.Required("CUTROOM_IMAGE_QUEUE"),
	}
	engineName := env.Optional("CUTROOM_ENGINE")
	slots := env.Number("CUTROOM_WORKERS", 1, 256, engines.Parse(engineName).Slots())
	catalog := env.Catalog()
	if err := env.Err(); err != nil {
		return err
	}
	tools, err := ffmpeg.Find(ctx, catalog.Limits)
	if err != nil {
		return err
	}
	tools.Fence().Tell(logger)
	edits, err := engines.New(engines.Config{Setting: engineName, Key: env.Optional("CUTROOM_ENGINE_KEY"), Tools: tools})
	if err != nil {
		return err
	}
	enhancer, err := newEnhancer(env)
	if err != nil {
		return err
	}
	scratch, err := newScratch(env.Optional("CUTROOM_SCRATCH"))
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	metrics := prometheus.New()
	health, err := newHealth(env.Optional("CUTROOM_ADDR"), engine.HealthOf(edits),
		metrics.Handler(env.Optional("CUTROOM_METRICS_KEY"), nil), logger)
	if err != nil {
		return err
	}
	defer health.stop()
	clients, err := config.LoadDefaultConfig(ctx, config.WithLogger(logging.Nop{}))
	if err != nil {
		return fmt.Errorf("the configuration of AWS: %w", err)
	}
	traces, err := tracing.New(ctx, os.Getenv, clients, "cutroom-worker", logger)
	if err != nil {
		return err
	}
	defer traces.Close()
	clients = awsclient.Trace(clients, traces.Tracer())

	client := dynamo.NewClient(clients)
	runs := dynamo.NewRuns(client, table)
	queue := sqsqueue.New(sqsqueue.Config{
		AWS: clients, URLs: queues, Jobs: runs, Tasks: stepfn.NewTasks(clients), Now: time.Now, Logger: logger,
	})
	defer queue.Close()
	guard, err := newGuard(os.Getenv("ECS_AGENT_URI"), engineName)
	if err != nil {
		return err
	}
	scraped, logged := metrics.Worker(), cloudwatch.New(os.Stdout, time.Now, logger).Worker()
	lanes := map[job.Lane]int{job.VideoLane: slots, job.ImageLane: slots}
	w := worker.New(worker.Config{
		Queue: queue, Runs: runs, Blobs: s3blob.New(clients, bucket), Engine: edits, Prober: tools, Catalog: catalog,
		Enhancer: enhancer, Folder: scratch, Slots: lanes, Lease: lease, ProgressEvery: progressEvery, CheckEvery: checkEvery,
		EngineHealth: engine.HealthOf(edits), Prefetch: engine.CapabilitiesOf(edits).Prefetch, Guard: guard,
		GuardEvery: guardEvery,
		Observer:   worker.Observers{scraped, logged}, Now: time.Now, Random: rand.Reader, Tracer: traces.Tracer(),
		Logger: logger,
	})
	scraped.Watch(w.Loads)
	var beside sync.WaitGroup
	defer beside.Wait()
	beside.Go(func() { beat(ctx, dynamo.NewWorkers(client, table, time.Now), lanes, logger) })
	beside.Go(func() { health.watch(ctx, w.Stuck) })
	beside.Go(func() { logged.Watch(ctx, shareEvery, w.Loads) })
	logger.Info("the worker takes jobs", "slots", slots)
	w.Run(ctx)
	logger.Info("the worker has handed back its jobs")
	return nil
}

// beat records, until the context ends, that the lanes have a worker.
func beat(ctx context.Context, workers *dynamo.Workers, lanes map[job.Lane]int, logger *slog.Logger) {
	ticker := time.NewTicker(dynamo.BeatEvery)
	defer ticker.Stop()
	for {
		for lane := range lanes {
			if err := workers.Beat(ctx, lane); err != nil && ctx.Err() == nil {
				logger.Warn("say that a worker is there", "lane", lane, "error", err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// newGuard returns what protects the worker's task from scale-in. It is nil outside
// ECS and for preview workers, which are only stopped all together, when there are
// no jobs.
func newGuard(agentURI, engineName string) (worker.Guard, error) {
	if agentURI == "" || engines.Parse(engineName).BuiltIn() {
		return nil, nil
	}
	protection, err := ecs.NewTaskProtection(agentURI, nil)
	if err != nil {
		return nil, fmt.Errorf("ECS_AGENT_URI: %w", err)
	}
	return protection, nil
}

// newEnhancer returns what expands prompts; nil if nothing is set.
func newEnhancer(env *setting.Environment) (worker.Enhancer, error) {
	enhancer, err := enhance.FromSettings(
		env.Optional("CUTROOM_ENHANCE_URL"), env.Optional("CUTROOM_ENHANCE_MODEL"), env.Optional("CUTROOM_ENHANCE_KEY"))
	if enhancer == nil {
		return nil, err // not a typed nil
	}
	return enhancer, err
}

// newScratch makes a folder of the worker's own. Its path is absolute, because
// ffmpeg runs in folders below it.
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
