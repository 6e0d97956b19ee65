package sqlite

import (
	"context"
	"fmt"
	"time"

	"cutroom/shared/domain/audit"
	"cutroom/shared/domain/batch"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/file"
	"cutroom/shared/domain/ratelimit"
)

const (
	// block is the disk space that even the smallest file takes.
	block = 4 << 10
	// perRecord is the number of bytes counted for a record in addition to its text.
	perRecord = 512
	// recordsPerDay is the maximum number of bytes of records that an account's calls may create
	// per day. recordsAtOnce is the additional burst.
	recordsPerDay = 1 << 30
	recordsAtOnce = 64 << 20
)

func (db *DB) checkFree() error {
	if db.free == nil {
		return nil
	}
	free, err := db.free()
	if err != nil {
		return fmt.Errorf("sqlite: read the disk's free space: %w", err)
	}
	if free >= 0 {
		return nil
	}
	return fullError(nil)
}

// admit returns an error if an account is not allowed to create a record with the given number of bytes of text.
func (db *DB) admit(ctx context.Context, account string, texts int) error {
	if err := db.checkFree(); err != nil {
		return err
	}
	rate := ratelimit.Rate{PerSecond: recordsPerDay / (24 * time.Hour).Seconds(), Burst: recordsAtOnce}
	state, err := db.records.Take(ctx, account, texts+perRecord, rate)
	if err != nil || state.Allowed {
		return err
	}
	over := fault.New(fault.Limited, "The account has created more than %d MiB of records today. Try again later.",
		recordsPerDay>>20)
	over.RetryAfter = max(state.RetryAfter, time.Minute)
	return over
}

// A file takes at least one disk block. A batch's result files were already admitted with the batch.
func (db *DB) admitFile(ctx context.Context, f file.File) error {
	if f.Purpose == batch.OutputPurpose {
		return db.checkFree()
	}
	return db.admit(ctx, f.Account, len(f.Filename)+int(max(0, block-f.Size)))
}

// admitBy is like admit, but does not limit operators, so that they can always change an account's settings.
func (db *DB) admitBy(ctx context.Context, from audit.Origin, account string, texts int) error {
	if from.IsOperator() {
		return nil
	}
	return db.admit(ctx, account, texts)
}
