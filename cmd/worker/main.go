// Command worker edits queued jobs in a container. It takes jobs from the SQS queues, fetches their inputs from the
// bucket, runs the engine, stores the results and reports to the jobs' executions. On a stop signal, it immediately
// hands back its jobs, and other workers continue them.
//
// Its settings are environment variables. CUTROOM_JOBS_TABLE, CUTROOM_USAGE_TABLE, CUTROOM_BUCKET,
// CUTROOM_VIDEO_QUEUE and CUTROOM_IMAGE_QUEUE (URLs) are required. CUTROOM_ENGINE names the engine: preview, the
// default; the URLs of engine servers that share the disk; or openai:URL or comfyui:URL with CUTROOM_ENGINE_KEY.
// CUTROOM_WORKERS is the number of concurrent jobs per lane (by default half the number of CPUs, or one per engine
// server). CUTROOM_SCRATCH is the folder for temporary files (by default inside the system's). CUTROOM_ADDR is the
// address of /healthz and /metrics (:8080). CUTROOM_METRICS_KEY is the key for reading /metrics; without it, metrics
// are not served. CUTROOM_FAMILY, CUTROOM_CATALOG and CUTROOM_ENHANCE_… are the same as for the one-machine server.
// If the worker uses an engine server and runs in a task of an ECS service (which sets ECS_AGENT_URI), it protects
// the task from scale-in while it has jobs.
//
// With -health it only checks the health of the worker at CUTROOM_ADDR and exits with 0 or 1. Containers that have no
// other program for a health check use this.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"log/slog"
	"os"

	"cutroom/shared/platform/httpserver"
	"cutroom/shared/platform/signals"
	"cutroom/shared/platform/trace"
)

func main() {
	health := flag.Bool("health", false, "check the health of the running worker, and exit with 0 or 1")
	flag.Parse()
	ctx, stop := signals.Context()
	defer stop()
	if *health {
		if err := httpserver.AskHealth(ctx, cmp.Or(os.Getenv("CUTROOM_ADDR"), defaultAddress)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1) //nolint:gocritic // nothing is left to stop
		}
		return
	}
	logger := slog.New(trace.Logger(slog.NewJSONHandler(os.Stdout, nil)))
	err := run(ctx, logger)
	if err != nil && ctx.Err() == nil { // otherwise a stop signal interrupted the start
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
