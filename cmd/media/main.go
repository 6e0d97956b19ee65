// Command media serves the media service in a container, for clients that post bodies larger than
// API Gateway and Lambda accept. It has every route of the service and uses the same records, blobs
// and queues as the functions. Any number of instances may run.
//
// Its settings are environment variables. CUTROOM_JOBS_TABLE, CUTROOM_FILES_TABLE, CUTROOM_CREDENTIALS_TABLE,
// CUTROOM_SESSIONS_TABLE, CUTROOM_USAGE_TABLE, CUTROOM_BUCKET, CUTROOM_STATE_MACHINE, CUTROOM_VIDEO_QUEUE,
// CUTROOM_IMAGE_QUEUE and CUTROOM_SECRET_ARN are required. CUTROOM_WAKE_FUNCTION, CUTROOM_WORKERS,
// CUTROOM_CONTENT_REDIRECT, CUTROOM_MAX_UPLOAD, CUTROOM_CORS_ORIGINS, CUTROOM_FAMILY,
// CUTROOM_CATALOG, CUTROOM_TIERS, CUTROOM_C2PA_LIBRARY, CUTROOM_ADDR (:8080), and CUTROOM_TRACING=xray or
// OTEL_EXPORTER_OTLP_ENDPOINT for traces are optional.
//
// With -health it only checks the health of the service at CUTROOM_ADDR and exits with 0 or 1.
// Containers that have no other program for a health check use this.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/smithy-go/logging"

	"cutroom/shared/app/awsapp"
	"cutroom/shared/app/setting"
	"cutroom/shared/app/tracing"
	"cutroom/shared/platform/awsclient"
	"cutroom/shared/platform/httpserver"
	"cutroom/shared/platform/memorylimit"
	"cutroom/shared/platform/signals"
	"cutroom/shared/platform/trace"
)

// shutdownTime is how long running requests may take to finish after a stop signal: long enough for a large upload.
const shutdownTime = 100 * time.Second

const defaultAddress = ":8080"

func main() {
	health := flag.Bool("health", false, "check the health of the running service, and exit with 0 or 1")
	flag.Parse()
	ctx, stop := signals.Context()
	var err error
	if *health {
		err = httpserver.AskHealth(ctx, cmp.Or(os.Getenv("CUTROOM_ADDR"), defaultAddress))
	} else {
		memorylimit.Set()
		err = run(ctx, slog.New(trace.Logger(slog.NewJSONHandler(os.Stdout, nil))))
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run serves until the context ends, and then lets running requests finish.
func run(ctx context.Context, logger *slog.Logger) error {
	clients, err := config.LoadDefaultConfig(ctx, config.WithLogger(logging.Nop{}))
	if err != nil {
		return fmt.Errorf("read the AWS configuration: %w", err)
	}
	traces, err := tracing.New(ctx, os.Getenv, clients, "cutroom-media", logger)
	if err != nil {
		return err
	}
	defer traces.Close()
	parts := awsapp.New(setting.NewEnvironment(os.Getenv), awsclient.Trace(clients, traces.Tracer()), traces.Tracer(), logger)
	// Event streams end when the shutdown begins. Requests that wait for a job continue, because the workers run
	// elsewhere.
	parts.Config.Draining = ctx
	address := cmp.Or(parts.Optional("CUTROOM_ADDR"), defaultAddress)
	surface, err := newSurface(parts)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("CUTROOM_ADDR: %w", err)
	}
	logger.Info("the media service is ready", "address", listener.Addr().String())
	return httpserver.Run(ctx, shutdownTime, func() { logger.Info("stopping") },
		httpserver.Surface{Server: httpserver.New(surface), Listener: listener})
}
