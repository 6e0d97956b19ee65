package usage

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	// WriteEvery is how long records gather before they are written together. A
	// crash loses at most what came in that time and during the write.
	WriteEvery = 250 * time.Millisecond
	// maxGroups bounds the memory for unwritten records, in groups of account,
	// key, model and day.
	maxGroups = 10_000
	// writeBatch is how many records are added in one call of the store.
	writeBatch = 500
	// firstRetry and lastRetry are the waits before a failed write is repeated,
	// at first and at most.
	firstRetry, lastRetry = 50 * time.Millisecond, time.Second
	// writeTime bounds one call of the store.
	writeTime = 10 * time.Second
	// drainTime bounds how long Run tries to write the rest when it stops.
	drainTime = 10 * time.Second
)

// WriterConfig is what a Writer is made of. All fields are required.
type WriterConfig struct {
	Store Store
	// NewID returns an id that no other record has.
	NewID  func() string
	Logger *slog.Logger
}

// Writer takes records without making callers wait for the store. It sums up
// what one account's key used of one model on one day, so that thousands of
// calls a second cost a few rows four times a second.
//
// A write that fails is repeated under the same ids until it succeeds, which
// counts nothing twice (see Store). Meanwhile records gather, and once there
// are 10,000 groups, Record waits.
//
// It suits a process that lives on after a call. One that may be frozen between
// calls, such as a function, uses Direct.
type Writer struct {
	config WriterConfig

	mu      sync.Mutex
	waiting map[group]*Counts
	// room is closed when the waiting records are taken to be written.
	room chan struct{}

	// writing holds the records that the last write left over; whoever writes
	// has received them.
	writing chan []Record
}

// group is what records are summed up by.
type group struct {
	account, key, model string
	day                 Day
}

// NewWriter returns a writer; Run makes it write.
func NewWriter(c WriterConfig) *Writer {
	w := &Writer{config: c, waiting: map[group]*Counts{}, room: make(chan struct{}), writing: make(chan []Record, 1)}
	w.writing <- nil
	return w
}

// Record takes a record. It waits only while too much is unwritten because the
// store fails or is slow. The record's own id is not used: each call counts.
//
// Errors: the context's, if it ends during the wait.
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
		room := w.room
		w.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Totals returns the store's totals, after writing everything that was recorded
// until now.
func (w *Writer) Totals(ctx context.Context, account string, first, last Day) ([]Total, error) {
	if err := w.write(ctx); err != nil {
		return nil, err
	}
	return w.config.Store.Totals(ctx, account, first, last)
}

// Run writes until the context ends, and then what is left. Record must not be
// called after the context has ended.
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
			w.config.Logger.Error("write usage; trying again", "error", err, "again_in", retry)
			timer.Reset(retry)
			retry = min(2*retry, lastRetry)
			continue
		}
		timer.Reset(WriteEvery)
		retry = firstRetry
	}
}

// drain writes what is left, and retries within drainTime.
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
			w.config.Logger.Error("usage is lost: the store did not take it before the stop", "error", err)
			return
		}
	}
}

// write writes everything that was recorded until now, once and in order.
// Records that fail are kept for the next call, with their ids.
func (w *Writer) write(ctx context.Context) error {
	var records []Record
	select {
	case records = <-w.writing:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { w.writing <- records }()
	// Records that failed before go first and alone, so that at most one batch
	// of summed-up records is ever repeated.
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

// add writes one batch.
func (w *Writer) add(ctx context.Context, batch []Record) error {
	// It does not end with the caller: an abandoned call would leave it unknown
	// what was written.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTime)
	defer cancel()
	return w.config.Store.Add(ctx, batch)
}

// take returns the waiting records, and makes room.
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
	close(w.room)
	w.room = make(chan struct{})
	return records
}
