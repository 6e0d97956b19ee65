package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/dustin/go-humanize"

	"cutroom/bench/filled"
)

const (
	// grownSize is the target size of the database file. Between size checks, grownStep records of
	// each kind are written.
	grownSize = 10 << 30
	grownStep = 500_000
	// grownBar is the maximum startup time with this database.
	grownBar = 2 * time.Second
)

// grown measures a server whose database has grown to 10 GB of files and other records. It measures
// the server's start, and compares its list pages with the pages of an account with few files. It
// takes minutes and 10 GB of disk, so it runs only when named.
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
	small, smallSize, err := b.startTime(ctx, data, now)
	if err != nil {
		return err
	}
	files, others := manyFiles, 0
	for size := int64(0); size < grownSize; {
		more, most := files+grownStep, others+grownStep
		err := filled.Write(ctx, path, filled.Service{From: others, Count: most, Now: now},
			filled.Files{Account: manyAccount, From: files, Count: more, Name: filled.LongName, Now: now},
			unswept(files, more, now))
		if err != nil {
			return fmt.Errorf("fill the database: %w", err)
		}
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		files, others, size = more, most, info.Size()
	}
	large, largeSize, err := b.startTime(ctx, data, now)
	if err != nil {
		return err
	}
	b.table.add(row{
		what: fmt.Sprintf("start with a database of %s: %s files, %s jobs", humanize.IBytes(largeSize),
			humanize.Comma(int64(2*files+fewFiles)), humanize.Comma(int64(others))),
		measured: short(large), floor: short(small) + " with " + humanize.IBytes(smallSize), ratio: ratio(large, small),
		bar: short(grownBar), verdict: verdictOf(large <= grownBar),
	})
	return b.listByHTTP(ctx, data, files)
}

// startTime returns the median time from starting a server on a folder until it serves requests,
// and the size of its database. The servers do not sweep.
func (b *bench) startTime(ctx context.Context, data string, now time.Time) (time.Duration, uint64, error) {
	var took []time.Duration
	for range 3 {
		if err := stopSweeps(data, now); err != nil {
			return 0, 0, err
		}
		begun := time.Now()
		server, err := b.program.Start(ctx, data)
		if err != nil {
			return 0, 0, err
		}
		took = append(took, time.Since(begun))
		server.Kill()
	}
	info, err := os.Stat(filepath.Join(data, "cutroom.db"))
	if err != nil {
		return 0, 0, err
	}
	return median(took), uint64(info.Size()), nil
}
