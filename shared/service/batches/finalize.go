package batches

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"cutroom/shared/domain/batch"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/file"
)

func (r *Runner) finalize(ctx context.Context, b batch.Batch) error {
	from := b.Status
	if err := r.giveUp(ctx, b); err != nil {
		return err
	}
	chunks, err := r.config.Store.Chunks(ctx, b.ID)
	if err != nil {
		return err
	}
	// Record the ids first, so that a crash does not lead to a second file.
	if b, err = r.plan(ctx, b, chunks); err != nil {
		return err
	}
	if err := r.writeFile(ctx, b, b.Output, chunks, false); err != nil {
		return err
	}
	if err := r.writeFile(ctx, b, b.Failures, chunks, true); err != nil {
		return err
	}
	b.Status, b.EndedAt = b.Outcome, r.now()
	return r.change(ctx, from, b)
}

// giveUp records a result for every call without a result.
func (r *Runner) giveUp(ctx context.Context, b batch.Batch) error {
	if b.Total == 0 || b.Outcome == batch.Completed {
		return nil
	}
	rec, err := r.newRecorder(ctx, b)
	if err != nil {
		return err
	}
	why := unanswered(b.Outcome)
	in, err := r.openInput(ctx, b)
	if err != nil {
		return err
	}
	defer in.close()
	results := make(chan result)
	kept := make(chan error, 1)
	go func() {
		err := rec.run(ctx, results)
		for range results { // the next attempt repeats these results
		}
		kept <- err
	}()
	err = func() error {
		defer close(results)
		for ctx.Err() == nil {
			at, err := in.next()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return fmt.Errorf("read the input: %w", err)
			}
			if rec.has(at.call) {
				continue
			}
			given := result{number: at.call, refusal: why}
			err = r.withFound(ctx, r.checking, b, in, func(line []byte) { given.customID = parsed(line).customID })
			if err != nil {
				return err
			}
			results <- given
		}
		return ctx.Err()
	}()
	return errors.Join(err, <-kept)
}

// unanswered returns the result for a call without a response.
func unanswered(outcome batch.Status) *resultError {
	switch outcome {
	case batch.Failed:
		return &resultError{"batch_failed", "This request was not completed before the batch failed."}
	case batch.Cancelled:
		return &resultError{"batch_cancelled", "This request was not completed before the batch was cancelled."}
	}
	return &resultError{"batch_expired", "This request was not completed before the batch expired."}
}

func (r *Runner) plan(ctx context.Context, b batch.Batch, chunks []batch.Chunk) (batch.Batch, error) {
	planned := b
	for _, c := range chunks {
		id := &planned.Output
		if c.Failures {
			id = &planned.Failures
		}
		if *id != "" {
			continue
		}
		named, err := r.config.Files.Name(file.File{})
		if err != nil {
			return b, err
		}
		*id = named.ID
	}
	if planned.Output == b.Output && planned.Failures == b.Failures {
		return b, nil
	}
	if err := r.change(ctx, b.Status, planned); err != nil {
		return b, err
	}
	planned.Revision++
	return planned, nil
}

// writeFile writes a result file from chunks, unless the file exists.
func (r *Runner) writeFile(ctx context.Context, b batch.Batch, id string, chunks []batch.Chunk, failures bool) error {
	if id == "" {
		return nil
	}
	if _, err := r.config.Files.Get(ctx, b.Account, id); err == nil || !fault.Is(err, fault.NotFound) {
		return err
	}
	what := "output"
	if failures {
		what = "error"
	}
	f := file.File{
		ID: id, Account: b.Account, Key: b.Key, Filename: b.ID + "_" + what + ".jsonl", MIME: "application/x-ndjson",
		Purpose: batch.OutputPurpose, Blob: file.BlobOf(id), CreatedAt: r.now(), Lifetime: b.OutputLifetime,
	}
	f.ExpiresAt = f.CreatedAt.Add(f.Lifetime)
	hash := md5.New()
	source := &joined{ctx: ctx, blobs: r.config.Blobs, chunks: chunks, failures: failures}
	defer source.close()
	// The bytes are always the same, so writing them again, even concurrently, is harmless.
	var err error
	if f.Size, err = r.config.Blobs.Put(ctx, f.Blob, io.TeeReader(source, hash)); err != nil {
		return fmt.Errorf("write the results: %w", err)
	}
	f.MD5 = hex.EncodeToString(hash.Sum(nil))
	// The results were paid for, so write them even if the storage is full.
	if _, err = r.config.Files.Create(ctx, f, 0); err != nil {
		// The next attempt checks whether the record exists.
		return fmt.Errorf("record the results: %w", err)
	}
	return nil
}

type joined struct {
	ctx      context.Context
	blobs    Blobs
	chunks   []batch.Chunk
	failures bool
	current  io.ReadCloser
}

func (j *joined) Read(p []byte) (int, error) {
	for {
		if j.current == nil {
			for len(j.chunks) > 0 && j.chunks[0].Failures != j.failures {
				j.chunks = j.chunks[1:]
			}
			if len(j.chunks) == 0 {
				return 0, io.EOF
			}
			next, err := j.blobs.Open(j.ctx, j.chunks[0].Blob, 0, -1)
			if err != nil {
				return 0, err
			}
			j.current, j.chunks = next, j.chunks[1:]
		}
		n, err := j.current.Read(p)
		if errors.Is(err, io.EOF) {
			j.close()
			err = nil
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
}

func (j *joined) close() {
	if j.current != nil {
		j.current.Close()
		j.current = nil
	}
}
