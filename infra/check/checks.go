package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"cutroom/shared/client"
)

type check struct {
	name  string
	limit time.Duration
	// runbook is a section of docs/runbook.md. log is the log group to read if the check fails,
	// with STAGE in place of the stage. It may be empty.
	runbook, log string
	run          func(context.Context, *visit) (detail string, err error)
}

func checks() []check {
	const (
		worker    = "/cutroom/STAGE/worker"
		functions = "/aws/lambda/cutroom-STAGE-"
		long      = 12 * time.Minute
	)
	return []check{
		{"keys", time.Minute, "media-errors", "/cutroom/STAGE/media-access", checkKeys},
		{"job", long, "video-queue-age", worker, checkJob},
		{"image", long, "image-queue-age", functions + "images", checkImage},
		{"upload", 15 * time.Minute, "internal-errors", functions + "arrived", checkUpload},
		{"stream", 15 * time.Minute, "inference-errors", functions + "inference", checkStream},
		{"webhook", long, "webhook-dead-letters", functions + "webhooks", checkWebhook},
		{"realtime", time.Minute, "media-errors", "/cutroom/STAGE/realtime", checkRealtime},
		{"state", time.Minute, "alarms", functions + "reaper", checkState},
	}
}

const held, failed, skipped = "held", "failed", "skipped"

// skip is the error of a check that could not run although nothing is wrong.
type skip string

func (s skip) Error() string { return string(s) }

func skipf(format string, values ...any) error { return skip(fmt.Sprintf(format, values...)) }

// checkAll runs the checks and prints a line for each. Afterwards, even if interrupted, it cancels
// its jobs and deletes its key. Its files expire.
func (v *visit) checkAll(ctx context.Context) error {
	err := v.arrive(ctx)
	for _, c := range checks() {
		if err != nil || len(v.only) > 0 && !slices.Contains(v.only, c.name) {
			continue
		}
		began := time.Now()
		how, detail := v.try(ctx, c)
		v.count[how]++
		fmt.Fprintf(v.out, "%-7s  %-15s  %6.1f s  %s\n", how, c.name, time.Since(began).Seconds(),
			strings.ReplaceAll(detail, "\n", "; "))
		if how == failed {
			fmt.Fprintf(v.out, "%36ssee: %s#%s %s\n", "", runbookPage, c.runbook, strings.ReplaceAll(c.log, "STAGE", v.stage))
		}
		err = ctx.Err()
	}
	const cleanTime = time.Minute
	clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTime)
	defer cancel()
	if left := v.leave(clean); left != nil {
		err = errors.Join(err, fmt.Errorf("clean up the account %s: %w", v.account, left))
	}
	return err
}

const runbookPage = "docs/runbook.md"

func (v *visit) try(ctx context.Context, c check) (how, detail string) {
	bounded, cancel := context.WithTimeoutCause(ctx, c.limit, fmt.Errorf("timed out after %s", c.limit))
	defer cancel()
	detail, err := c.run(bounded, v)
	var reason skip
	var failure *client.Error
	switch {
	case err == nil:
		return held, detail
	case errors.As(err, &reason):
		return skipped, err.Error()
	case bounded.Err() != nil:
		return failed, fmt.Sprintf("%v: %v", context.Cause(bounded), err)
	case errors.As(err, &failure):
		return failed, fmt.Sprintf("%v (status %d, request %s)", err, failure.Status, failure.RequestID)
	}
	return failed, err.Error()
}
