package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"cutroom/bench/filled"
)

const (
	// grownSize is the size of the database's file, and grownStep how many records are
	// written before it is looked at again.
	grownSize = 10 << 30
	grownStep = 1_000_000
	// grownBar is how long a start may take on it.
	grownBar = 2 * time.Second
)

// grown measures a server whose database has grown to 10 GB, all of it records of files of
// one account: how long its start takes, and pages beside those of an account with few
// files. It takes minutes and as much room, and so runs only by its name.
func (b *bench) grown(ctx context.Context) error {
	data := filepath.Join(b.folder, "grown")
	defer os.RemoveAll(data)
	if err := os.Mkdir(data, 0o700); err != nil {
		return err
	}
	path, now := filepath.Join(data, "cutroom.db"), time.Now()
	if err := fillFiles(ctx, path, now); err != nil {
		return fmt.Errorf("fill the database: %w", err)
	}
	small, err := b.startTime(ctx, data)
	if err != nil {
		return err
	}
	files, size := manyFiles, int64(0)
	for size < grownSize {
		more := filled.Files{
			Account: manyAccount, From: files, Count: files + grownStep, Name: filled.LongName, Now: now,
		}
		if err := filled.Write(ctx, path, more); err != nil {
			return fmt.Errorf("fill the database: %w", err)
		}
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		files, size = more.Count, info.Size()
	}
	large, err := b.startTime(ctx, data)
	if err != nil {
		return err
	}
	b.table.add(row{
		what: fmt.Sprintf("start with a database of %.1f GiB, %d files", float64(size)/(1<<30), files), measured: short(large),
		floor: short(small) + " with 1,001,000 files", ratio: ratio(large, small), bar: short(grownBar),
		verdict: verdictOf(large <= grownBar),
	})
	return b.listByHTTP(ctx, data)
}

// startTime returns the median time from a server's start on a folder until it serves.
func (b *bench) startTime(ctx context.Context, data string) (time.Duration, error) {
	var took []time.Duration
	for range 3 {
		begun := time.Now()
		server, err := b.program.Start(ctx, data)
		if err != nil {
			return 0, err
		}
		took = append(took, time.Since(begun))
		server.Kill()
	}
	return median(took), nil
}
