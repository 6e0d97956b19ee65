package batches

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"cutroom/shared/domain/batch"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/usage"
	"cutroom/shared/platform/clock"
	"cutroom/shared/service/gateway"
)

const (
	// keepEvery is how often results are stored by default.
	keepEvery = 2 * time.Second
	// keepBytes and keepLines limit how many results are collected before they are stored.
	keepBytes, keepLines = 1 << 20, 1000
	// lastKeep limits the final attempt to store results at shutdown.
	lastKeep = 10 * time.Second
)

type result struct {
	number   int
	customID string
	// refusal is the reason why the call has no response. answer may still contain the call's
	// usage, and is nil if the call was not made.
	answer  *gateway.BatchResponse
	refusal *resultError
}

// resultLine is one line of a result file (docs/contract/batches.md#results).
type resultLine struct {
	ID       string          `json:"id"`
	CustomID string          `json:"custom_id"`
	Response *resultResponse `json:"response"`
	Error    *resultError    `json:"error"`
}

type resultResponse struct {
	StatusCode int             `json:"status_code"`
	RequestID  string          `json:"request_id"`
	Body       json.RawMessage `json:"body"`
}

type resultError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// recorder stores a batch's results in chunks. Only the method has and the field space may be used concurrently.
type recorder struct {
	*Runner
	batch batch.Batch
	// name is part of the names of the recorder's blobs.
	name string
	// done marks the calls that had a result when the recorder was created.
	done              []bool
	chunks            int
	answers, failures gathered
	used              []usage.Record
	space             *space
	limit             func() int64
}

type gathered struct {
	text  bytes.Buffer
	lines []int
}

func (r *Runner) newRecorder(ctx context.Context, b batch.Batch) (*recorder, error) {
	chunks, err := r.config.Store.Chunks(ctx, b.ID)
	if err != nil {
		return nil, err
	}
	space, err := newSpace(ctx, r.config.Storage, b)
	if err != nil {
		return nil, err
	}
	rec := &recorder{
		Runner: r, batch: b, name: r.config.NewID(), done: make([]bool, b.Total+1), chunks: len(chunks), space: space,
		limit: func() int64 { return 0 },
	}
	for _, c := range chunks {
		for _, line := range c.Lines {
			rec.done[line] = true
		}
	}
	return rec, nil
}

func (rec *recorder) has(call int) bool { return rec.done[call] }

// run stores results until the channel is closed. It retries failed writes. It returns an error
// only if the context has ended or another process is working on the batch.
func (rec *recorder) run(ctx context.Context, results <-chan result) error {
	timer := time.NewTimer(rec.config.Keep)
	timer.Stop()
	defer timer.Stop()
	for {
		select {
		case r, more := <-results:
			if !more {
				return rec.flush(ctx)
			}
			if len(rec.answers.lines)+len(rec.failures.lines) == 0 {
				timer.Reset(rec.config.Keep)
			}
			if err := rec.add(r); err != nil {
				return err
			}
			if rec.answers.text.Len()+rec.failures.text.Len() < keepBytes && len(rec.answers.lines)+len(rec.failures.lines) < keepLines {
				continue
			}
		case <-timer.C:
		}
		if err := rec.flush(ctx); err != nil {
			return err
		}
	}
}

func (rec *recorder) add(r result) error {
	id := fmt.Sprintf("batch_req_%s_%d", strings.TrimPrefix(rec.batch.ID, "batch_"), r.number)
	line := resultLine{ID: id, CustomID: r.customID, Error: r.refusal}
	to := &rec.failures
	if r.answer != nil && r.refusal == nil {
		line.Response = &resultResponse{r.answer.Status, id, r.answer.Body}
		if r.answer.Status == 200 {
			to = &rec.answers
		}
	}
	if r.answer != nil {
		for i, used := range r.answer.Used {
			used.ID = fmt.Sprintf("%s/%d/%d", rec.batch.ID, r.number, i)
			rec.used = append(rec.used, used)
		}
	}
	err := to.add(line)
	if err != nil { // the response is not JSON, so a retry would not help
		line.Response, line.Error = nil, &resultError{"server_error", "The model server's response could not be stored."}
		to = &rec.failures
		err = to.add(line)
	}
	to.lines = append(to.lines, r.number)
	return err
}

func (g *gathered) add(line resultLine) error {
	encoder := json.NewEncoder(&g.text) // Encode writes each value on one line
	encoder.SetEscapeHTML(false)
	return encoder.Encode(line)
}

// flush stores the collected results. It retries until the context ends.
//
// Errors: fault.Conflict if another process is working on the batch.
func (rec *recorder) flush(ctx context.Context) error {
	retry := firstRetry
	for {
		err := rec.save(ctx)
		if err == nil || ctx.Err() != nil || fault.Is(err, fault.Conflict) {
			return err
		}
		rec.config.Logger.Error("cannot store results of a batch; trying again", "batch", rec.batch.ID, "error", err, "again_in", retry)
		clock.Wait(ctx, retry)
		retry = min(2*retry, lastRetry)
	}
}

func (rec *recorder) save(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastKeep)
	defer cancel()
	size := int64(rec.answers.text.Len() + rec.failures.text.Len())
	if err := rec.fits(size); err != nil {
		return err
	}
	if err := rec.space.hold(ctx, size, rec.limit()); err != nil {
		return err
	}
	var chunks []batch.Chunk
	for _, g := range []*gathered{&rec.answers, &rec.failures} {
		if len(g.lines) == 0 {
			continue
		}
		number := rec.chunks + len(chunks)
		chunk := batch.Chunk{
			Number: number, Blob: batch.ChunkBlob(rec.batch.ID, number, rec.name), Failures: g == &rec.failures, Lines: g.lines,
		}
		if _, err := rec.config.Blobs.Put(ctx, chunk.Blob, bytes.NewReader(g.text.Bytes())); err != nil {
			return err
		}
		chunks = append(chunks, chunk)
	}
	if len(chunks) == 0 {
		return nil
	}
	if err := rec.config.Store.Save(ctx, rec.batch.ID, chunks, rec.used); err != nil {
		if fault.Is(err, fault.Conflict) {
			err = errors.Join(err, rec.discard(ctx, chunks))
		}
		if errors.Is(err, batch.ErrEnded) { // the batch's storage may already have been released
			err = errors.Join(err, rec.config.Storage.Release(ctx, rec.batch))
		}
		return err
	}
	rec.space.keep(size)
	rec.chunks += len(chunks)
	rec.answers, rec.failures, rec.used = gathered{}, gathered{}, nil
	return nil
}

// discard deletes blobs that were not recorded, because the sweep of an ended batch may have missed them.
func (rec *recorder) discard(ctx context.Context, chunks []batch.Chunk) error {
	var failures []error
	for _, c := range chunks {
		failures = append(failures, rec.config.Blobs.Delete(ctx, c.Blob))
	}
	return errors.Join(failures...)
}
