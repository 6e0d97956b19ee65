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
	// keepEvery is how long answers are collected before they are kept together, unless the rhythm
	// says otherwise.
	keepEvery = 2 * time.Second
	// keepBytes and keepLines limit the collected answers.
	keepBytes, keepLines = 1 << 20, 1000
	// lastKeep limits the last attempt to keep answers when the service stops.
	lastKeep = 10 * time.Second
)

type result struct {
	number   int
	customID string
	// refusal is why the call has no answer. answer may still have its usage; it is nil if the call
	// was not made.
	answer  *gateway.BatchResponse
	refusal *resultError
}

// resultLine is a result in a file (docs/contract/batches.md#results).
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

// keeper keeps the results of a batch in chunks. Only has and space may be used concurrently.
type keeper struct {
	*Runner
	batch batch.Batch
	// name is a part of this keeper's blob names.
	name string
	// done are the calls that had a result when the keeper was made.
	done   []bool
	chunks int
	// answers and failures are the collected results, and used their usage.
	answers, failures gathered
	used              []usage.Record
	space             *space
	// limit returns how many bytes the account may store; 0 means no limit.
	limit func() int64
}

// gathered are results that are kept together.
type gathered struct {
	text  bytes.Buffer
	lines []int
}

// newKeeper returns a keeper that knows the results kept earlier.
func (r *Runner) newKeeper(ctx context.Context, b batch.Batch) (*keeper, error) {
	chunks, err := r.config.Store.Chunks(ctx, b.ID)
	if err != nil {
		return nil, err
	}
	room, err := newSpace(ctx, r.config.Storage, b)
	if err != nil {
		return nil, err
	}
	k := &keeper{
		Runner: r, batch: b, name: r.config.NewID(), done: make([]bool, b.Total+1), chunks: len(chunks), space: room,
		limit: func() int64 { return 0 },
	}
	for _, c := range chunks {
		for _, line := range c.Lines {
			k.done[line] = true
		}
	}
	return k, nil
}

// has reports whether a call had a result when the keeper was made.
func (k *keeper) has(call int) bool { return k.done[call] }

// run keeps results until the channel closes. It repeats failed writes, and takes no results until they
// succeed. It returns an error only when the context has ended, or another process works on the batch.
func (k *keeper) run(ctx context.Context, results <-chan result) error {
	timer := time.NewTimer(k.config.Keep)
	timer.Stop()
	defer timer.Stop()
	for {
		select {
		case r, more := <-results:
			if !more {
				return k.flush(ctx)
			}
			if len(k.answers.lines)+len(k.failures.lines) == 0 {
				timer.Reset(k.config.Keep)
			}
			if err := k.add(r); err != nil {
				return err
			}
			if k.answers.text.Len()+k.failures.text.Len() < keepBytes && len(k.answers.lines)+len(k.failures.lines) < keepLines {
				continue
			}
		case <-timer.C:
		}
		if err := k.flush(ctx); err != nil {
			return err
		}
	}
}

func (k *keeper) add(r result) error {
	id := fmt.Sprintf("batch_req_%s_%d", strings.TrimPrefix(k.batch.ID, "batch_"), r.number)
	line := resultLine{ID: id, CustomID: r.customID, Error: r.refusal}
	to := &k.failures
	if r.answer != nil && r.refusal == nil {
		line.Response = &resultResponse{r.answer.Status, id, r.answer.Body}
		if r.answer.Status == 200 {
			to = &k.answers
		}
	}
	if r.answer != nil {
		for i, used := range r.answer.Used {
			used.ID = fmt.Sprintf("%s/%d/%d", k.batch.ID, r.number, i)
			k.used = append(k.used, used)
		}
	}
	err := to.add(line)
	if err != nil { // the answer is no JSON; to ask for it again would be no better
		line.Response, line.Error = nil, &resultError{"server_error", "The model server's answer could not be kept."}
		to = &k.failures
		err = to.add(line)
	}
	to.lines = append(to.lines, r.number)
	return err
}

// add writes a line, or nothing if it fails.
func (g *gathered) add(line resultLine) error {
	encoder := json.NewEncoder(&g.text) // it writes JSON in one line
	encoder.SetEscapeHTML(false)
	return encoder.Encode(line)
}

// flush keeps the collected results. It retries until the context has ended, and then makes a last attempt.
//
// Errors: fault.Conflict if another process works on the batch.
func (k *keeper) flush(ctx context.Context) error {
	retry := firstRetry
	for {
		err := k.save(ctx)
		if err == nil || ctx.Err() != nil || fault.Is(err, fault.Conflict) {
			return err
		}
		k.config.Logger.Error("cannot keep answers of a batch; trying again", "batch", k.batch.ID, "error", err, "again_in", retry)
		clock.Wait(ctx, retry)
		retry = min(2*retry, lastRetry)
	}
}

// save keeps the collected results in a chunk of answers and one of failures.
func (k *keeper) save(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastKeep)
	defer cancel()
	size := int64(k.answers.text.Len() + k.failures.text.Len())
	if err := k.fits(size); err != nil {
		return err
	}
	if err := k.space.hold(ctx, size, k.limit()); err != nil {
		return err
	}
	var chunks []batch.Chunk
	for _, g := range []*gathered{&k.answers, &k.failures} {
		if len(g.lines) == 0 {
			continue
		}
		number := k.chunks + len(chunks)
		chunk := batch.Chunk{
			Number: number, Blob: batch.ChunkBlob(k.batch.ID, number, k.name), Failures: g == &k.failures, Lines: g.lines,
		}
		if _, err := k.config.Blobs.Put(ctx, chunk.Blob, bytes.NewReader(g.text.Bytes())); err != nil {
			return err
		}
		chunks = append(chunks, chunk)
	}
	if len(chunks) == 0 {
		return nil
	}
	if err := k.config.Store.Save(ctx, k.batch.ID, chunks, k.used); err != nil {
		if fault.Is(err, fault.Conflict) {
			err = errors.Join(err, k.discard(ctx, chunks))
		}
		if errors.Is(err, batch.ErrEnded) { // its storage may have been released before
			err = errors.Join(err, k.config.Storage.Release(ctx, k.batch))
		}
		return err
	}
	k.space.keep(size)
	k.chunks += len(chunks)
	k.answers, k.failures, k.used = gathered{}, gathered{}, nil
	return nil
}

// discard deletes blobs that are not kept. If another process has ended the batch, its blobs may
// have been deleted before these were written.
func (k *keeper) discard(ctx context.Context, chunks []batch.Chunk) error {
	var failures []error
	for _, c := range chunks {
		failures = append(failures, k.config.Blobs.Delete(ctx, c.Blob))
	}
	return errors.Join(failures...)
}
