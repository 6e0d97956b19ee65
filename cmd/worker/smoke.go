package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/logging"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/adapter/s3blob"
	"cutroom/shared/adapter/sqsqueue"
	"cutroom/shared/app/engineconfig"
	"cutroom/shared/app/setting"
	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
	"cutroom/shared/engine"
)

const (
	// smokeTime is how long to repeat a check that may still succeed. It takes seconds until every
	// AWS service knows a new deployment's role, and minutes until an engine server has started.
	smokeTime  = 3 * time.Minute
	smokeEvery = 2 * time.Second
)

type smokeCheck struct {
	name string
	try  func(context.Context) error
}

// smoke checks, without taking a job, that a worker with these settings could work: that its engine edits, that
// its scratch folder is writable, and that its role can access the queues, the records and the blobs.
func smoke(ctx context.Context, logger *slog.Logger) error {
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
	clients, err := config.LoadDefaultConfig(ctx, config.WithLogger(logging.Nop{}))
	if err != nil {
		return fmt.Errorf("read the AWS configuration: %w", err)
	}
	checks := append(smokeStores(clients, s), smokeCheck{"result signing", func(ctx context.Context) error {
		_, err := newSigner(ctx, s, edits, scratch, clients, logger)
		return err
	}})
	checks = append(checks, smokeCheck{"the engine", func(ctx context.Context) error {
		return smokeEngine(ctx, s, edits, scratch)
	}})
	for _, c := range checks {
		if err := c.hold(ctx); err != nil {
			return err
		}
		logger.Info("check passed", "check", c.name)
	}
	logger.Info("the smoke check passed")
	return nil
}

func (c smokeCheck) hold(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, smokeTime)
	defer cancel()
	for {
		err := c.try(bounded)
		if err == nil {
			return nil
		}
		if !mayHoldLater(err) {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		timer := time.NewTimer(smokeEvery)
		select {
		case <-timer.C:
		case <-bounded.Done():
			timer.Stop()
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
}

// mayHoldLater reports whether a failed check may succeed later. Engine failures are final, and so
// are all AWS errors except a missing permission.
func mayHoldLater(err error) bool {
	var failure smithy.APIError
	if errors.As(err, &failure) {
		return strings.Contains(failure.ErrorCode(), "AccessDenied")
	}
	var failed *engine.Error
	return !errors.As(err, &failed)
}

// smokeEngine makes a short video if the engine is built in. It only asks an engine server whether
// it accepts runs, because a run would load models.
func smokeEngine(ctx context.Context, s settings, edits editing, folder string) error {
	if !engineconfig.Parse(s.engine).BuiltIn() {
		if look := engine.HealthOf(edits.engine); look != nil {
			return look(ctx)
		}
		return nil
	}
	output := filepath.Join(folder, "smoke.mp4")
	_, err := edits.engine.Run(ctx, engine.Spec{
		Job: "smoke", Kind: catalog.TextToVideo, Prompt: "a calm sea", Seed: 1,
		Size: catalog.Size{Width: 320, Height: 180}, FPS: 12, Duration: time.Second, Folder: folder, Output: output,
	}, func(engine.Progress) {})
	if err == nil {
		_, err = edits.tools.ProbeVideo(ctx, output, "video/mp4")
	}
	if err != nil {
		return engine.AsError(err)
	}
	return nil
}

func smokeStores(clients aws.Config, s settings) []smokeCheck {
	name := job.InputBlob("smoke-"+rand.Text(), "data")
	records, blobs := dynamo.NewClient(clients), s3blob.New(clients, s.bucket)
	runs := dynamo.NewRuns(records, s.table)
	queue := sqsqueue.New(sqsqueue.Config{AWS: clients, URLs: s.queues, Jobs: runs, Now: time.Now, Logger: slog.Default()})
	reach := func(lane job.Lane) func(context.Context) error {
		return func(ctx context.Context) error { return queue.Reach(ctx, lane) }
	}
	return []smokeCheck{
		{"the video queue", reach(job.VideoLane)},
		{"the image queue", reach(job.ImageLane)},
		{"the job table", func(ctx context.Context) error {
			_, err := runs.Get(ctx, "job_smoke")
			if fault.Is(err, fault.NotFound) {
				return nil
			}
			return err
		}},
		{"the usage table", dynamo.NewUsage(records, s.usage).Reach},
		{"the bucket", func(ctx context.Context) error { return smokeBlob(ctx, blobs, name) }},
	}
}

func smokeBlob(ctx context.Context, blobs *s3blob.Store, name string) (err error) {
	content := []byte("smoke")
	if _, err := blobs.Put(ctx, name, bytes.NewReader(content)); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, blobs.Delete(ctx, name)) }()
	stored, err := blobs.Open(ctx, name, 0, -1)
	if err != nil {
		return err
	}
	defer stored.Close()
	read, err := io.ReadAll(stored)
	if err == nil && !bytes.Equal(read, content) {
		err = fmt.Errorf("read back different bytes: %q", read)
	}
	return err
}
