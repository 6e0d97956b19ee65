// Command worker edits queued jobs in a container: it takes them from the lanes'
// queues in SQS, fetches their inputs from the bucket, lets the engine work, stores
// the result and reports to the job's execution. It runs until it is told to end;
// then it hands back the jobs in its hands, at once, and any other worker goes on
// with them.
//
// Its settings are environment variables: CUTROOM_JOBS_TABLE, CUTROOM_BUCKET,
// CUTROOM_VIDEO_QUEUE and CUTROOM_IMAGE_QUEUE (URLs) are required. CUTROOM_ENGINE
// is what edits: preview, which it is when nothing is set, the URL of an engine
// server that shares the disk, or openai:URL with CUTROOM_ENGINE_KEY. CUTROOM_WORKERS is how many jobs of a lane it edits
// at once (half of the processors; with an engine server 1), CUTROOM_SCRATCH the
// folder for its temporary files (one in the system's), CUTROOM_ADDR the address of
// /healthz (:8080). CUTROOM_FAMILY, CUTROOM_CATALOG and CUTROOM_ENHANCE_… are as
// for the one-machine server. CUTROOM_TRACING=xray sends traces to X-Ray,
// OTEL_EXPORTER_OTLP_ENDPOINT to a collector.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"cutroom/shared/trace"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	err := run(ctx, slog.New(trace.Logger(slog.NewJSONHandler(os.Stdout, nil))))
	if err != nil && ctx.Err() == nil { // else it was told to end while it started
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
