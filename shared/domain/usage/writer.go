package usage

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	// A crash loses at most the records of one WriteEvery and of the write in progress.
	WriteEvery = 250 * time.Millisecond
	// maxGroups limits the unwritten groups. The records of a group have the same account, key, model and day.
	maxGroups  = 10_000
	writeBatch = 500
	// These are the delays before a failed write is retried.
	firstRetry, lastRetry = 50 * time.Millisecond, time.Second
	writeTime             = 10 * time.Second
	drainTime             = 10 * time.Second // for the remaining records at shutdown
)

type WriterConfig struct {
	Store  Store
	NewID  func() string
	Logger *slog.Logger
}

// Writer accepts records without making callers wait for the store. It sums the usage by account,
// key, model and day, and writes a few rows four times per second. It repeats a failed write with
// the same ids, so that nothing is counted twice. Meanwhile records accumulate. Record blocks once
// there are 10,000 groups. A process that may be frozen between calls uses Direct instead.
type Writer struct {
	config WriterConfig

	mu      sync.Mutex
	waiting map[group]*Counts
	// drained is closed when the accumulated records are taken for writing.
	drained chan struct{}

	// writing holds the records that the last write failed to store. Only the goroutine that has received them may
	// write.
	writing chan []Record
}

type group struct {
	account, key, model string
	day                 Day
}

func NewWriter(c WriterConfig) *Writer {
	w := &Writer{config: c, waiting: map[group]*Counts{}, drained: make(chan struct{}), writing: make(chan []Record, 1)}
	w.writing <- nil
	return w
}

// Record blocks only if too many records are unwritten. It ignores the record's id, so every call counts.
func (w *Writer) Record(ctx context.Context, record Record) error {
	g := group{record.Account, record.Key, record.Model, record.Day}
	for {
		w.mu.Lock()
		counts, ok := w.waiting[g]
		if !ok && len(w.waiting) < maxGroups {
			counts = &Counts{}
			w.waiting[g] = counts
		}
		if counts != nil {
			counts.Add(record.Counts)
			w.mu.Unlock()
			return nil
		}
		drained := w.drained
		w.mu.Unlock()
		select {
		case <-drained:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Totals first writes everything that was recorded before it was called.
func (w *Writer) Totals(ctx context.Context, account string, first, last Day, by Columns) ([]Total, error) {
	if err := w.write(ctx); err != nil {
		return nil, err
	}
	return w.config.Store.Totals(ctx, account, first, last, by)
}

// Run writes records until the context ends. Record must not be called after that.
func (w *Writer) Run(ctx context.Context) {
	retry := firstRetry
	timer := time.NewTimer(WriteEvery)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			w.drain(context.WithoutCancel(ctx))
			return
		case <-timer.C:
		}
		if err := w.write(ctx); err != nil && ctx.Err() == nil {
			w.config.Logger.Error("cannot write usage; trying again", "error", err, "again_in", retry)
			timer.Reset(retry)
			retry = min(2*retry, lastRetry)
			continue
		}
		timer.Reset(WriteEvery)
		retry = firstRetry
	}
}

func (w *Writer) drain(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, drainTime)
	defer cancel()
	for {
		err := w.write(ctx)
		if err == nil {
			return
		}
		select {
		case <-time.After(firstRetry):
		case <-ctx.Done():
			w.config.Logger.Error("usage is lost: cannot write it before shutdown", "error", err)
			return
		}
	}
}

// write writes everything that was recorded before it was called, in order. It keeps records that
// fail, with their ids, for the next call.
func (w *Writer) write(ctx context.Context) error {
	var records []Record
	select {
	case records = <-w.writing:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { w.writing <- records }()
	// The first round writes only the records that failed before, so that at most one batch is repeated.
	for range 2 {
		if len(records) == 0 {
			records = w.take()
		}
		for len(records) > 0 {
			batch := records[:min(len(records), writeBatch)]
			if err := w.add(ctx, batch); err != nil {
				return err
			}
			records = records[len(batch):]
		}
	}
	return nil
}

func (w *Writer) add(ctx context.Context, batch []Record) error {
	// If the write were canceled with the caller's context, records could be left in an unknown state.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTime)
	defer cancel()
	return w.config.Store.Add(ctx, batch)
}

func (w *Writer) take() []Record {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.waiting) == 0 {
		return nil
	}
	records := make([]Record, 0, len(w.waiting))
	for g, counts := range w.waiting {
		records = append(records, Record{
			ID: w.config.NewID(), Account: g.account, Key: g.key, Model: g.model, Day: g.day, Counts: *counts,
		})
	}
	clear(w.waiting)
	close(w.drained)
	w.drained = make(chan struct{})
	return records
}
