package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"cutroom/shared/platform/clock"
	"cutroom/shared/testkit/servertest"
)

const (
	// settleTime is the maximum time after the load until all usage is counted and all sessions are free.
	settleTime = 60 * time.Second
	batchMost  = 40
)

// checkFiles downloads the remaining files again and checks their content.
func (l *ledger) checkFiles(ctx context.Context, client *servertest.Client) error {
	for id, digest := range l.files {
		answer, err := client.Get(ctx, "/v1/uploads/"+id)
		if err != nil || answer.Status != 200 || sha256.Sum256(answer.Body) != digest {
			return fmt.Errorf("the file %s differs from the stored one: status %d, %d bytes, %w", id, answer.Status,
				len(answer.Body), err)
		}
	}
	fmt.Printf("files    %d are unchanged\n", len(l.files))
	return nil
}

type used struct{ jobs, completed, live, batched int }

// checkUsage compares the service's usage with the finished work. Work that a client abandoned may or
// may not be counted.
func (l *ledger) checkUsage(ctx context.Context, server *servertest.Server, completed int) error {
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	leastLive := l.counts["completions"]
	mostLive := leastLive + l.counts["completions that the client left"]
	mostBatched := l.calls + batchMost*l.counts["batches that were not followed to their end"]
	for {
		u, err := readUsage(ctx, server)
		if err != nil {
			return err
		}
		if u.jobs == len(l.jobs) && u.completed == completed && u.live >= leastLive && u.live <= mostLive &&
			u.batched >= l.calls && u.batched <= mostBatched {
			fmt.Printf("usage    %d jobs, %d completed; %d completions and %d batch requests\n", u.jobs, u.completed, u.live,
				u.batched)
			return nil
		}
		if !clock.Wait(ctx, time.Second) {
			return fmt.Errorf("the usage is %+v; want %d jobs, %d completed, %d to %d completions, and %d to %d batch requests",
				u, len(l.jobs), completed, leastLive, mostLive, l.calls, mostBatched)
		}
	}
}

// readUsage adds up the usage of two days, because the load may run past midnight.
func readUsage(ctx context.Context, server *servertest.Server) (u used, err error) {
	now := time.Now().UTC()
	client := &servertest.Client{URL: server.InferenceURL()}
	answer, err := client.Get(ctx, fmt.Sprintf("/v1/usage?from=%s&to=%s", now.Add(-24*time.Hour).Format(time.DateOnly),
		now.Format(time.DateOnly)), "Authorization", bearer)
	var read struct {
		Data []struct {
			Model         string
			Requests      int
			BatchRequests int `json:"batch_requests"`
			Jobs          int
			JobsCompleted int `json:"jobs_completed"`
		}
	}
	if err := readJSON(answer, err, &read); err != nil {
		return u, fmt.Errorf("read the usage: %w", err)
	}
	for _, row := range read.Data {
		u.jobs += row.Jobs
		u.completed += row.JobsCompleted
		u.batched += row.BatchRequests
		if row.Model == "cutroom-echo" { // the other rows are for sessions
			u.live += row.Requests - row.BatchRequests
		}
	}
	return u, nil
}

func checkSessions(ctx context.Context, client *servertest.Client) error {
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	for {
		var quota struct{ Active int }
		answer, err := client.Get(ctx, "/v1/realtime/quota")
		if err := readJSON(answer, err, &quota); err != nil {
			return fmt.Errorf("read the session quota: %w", err)
		}
		if quota.Active == 0 {
			return nil
		}
		if !clock.Wait(ctx, time.Second) {
			return fmt.Errorf("%d sessions are still open", quota.Active)
		}
	}
}

// checkLeft returns an error if a stopped server left temporary files or unknown blobs behind.
func checkLeft(ctx context.Context, program servertest.Program, data string) error {
	var failures []error
	for _, folder := range []string{filepath.Join("blobs", ".tmp"), filepath.Join("blobs", ".unknown"), "scratch"} {
		err := filepath.WalkDir(filepath.Join(data, folder), func(path string, entry fs.DirEntry, err error) error {
			if errors.Is(err, os.ErrNotExist) {
				return nil
			}
			if err == nil && !entry.IsDir() {
				failures = append(failures, fmt.Errorf("the file %s remains", path))
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	// The command lists files without a record and sets them aside.
	listed, err := program.Run(ctx, []string{"CUTROOM_DATA=" + data}, "doctor", "--repair")
	if err == nil && listed.ExitCode != 0 {
		err = fmt.Errorf("doctor --repair: %s", listed.Stderr)
	}
	if strings.Contains(listed.Stdout, "set aside on") {
		failures = append(failures, fmt.Errorf("blobs without a record remain:\n%s", listed.Stdout))
	}
	return errors.Join(append(failures, err)...)
}
