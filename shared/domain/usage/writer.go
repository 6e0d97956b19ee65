package usage

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	// WriteEvery is how long a record waits for others at most before all of
	// them are written together. A crash loses no more than came in that time
	// and while the write ran.
	WriteEvery = 250 * time.Millisecond
	// maxGroups bounds the memory of what is not written yet, in groups of
	// account, key, model and day.
	maxGroups = 10_000
	// writeBatch is how many records one call of the store gets.
	writeBatch = 500
	// firstRetry and lastRetry are how long a write that failed waits for the
	// next attempt, at first and at most.
	firstRetry, lastRetry = 50 * time.Millisecond, time.Second
	// writeTime bounds one call of the store.
	writeTime = 10 * time.Second
	// drainTime bounds how long a stop tries to write what is left.
	drainTime = 10 * time.Second
)

// WriterConfig says where a Writer writes. All fields are required.
type WriterConfig struct {
	Store Store
	// NewID makes an id that no other record has.
	NewID  func() string
	Logger *slog.Logger
}

// Writer takes records without making their callers wait for the store. What
// one account's key used of one model on one day is summed up while it waits, so
// that thousands of calls a second cost a few rows four times a second.
//
// A write that fails is repeated under the same ids until it succeeds, which
// counts nothing twice (see Store). Meanwhile records gather; once there are
// 10,000 groups of them, Record waits.
//
// It suits a process that lives on after a call. One that may be frozen between
// calls, as a function is, adds to the Store itself.
type Writer struct {
	config WriterConfig

	mu      sync.Mutex
	waiting map[group]*Counts
	// room is closed when what waits is taken to be written.
	room chan struct{}

	// writing is held by the one that writes, and is what it left unwritten.
	writing chan []Record
}

// group is what is summed up.
type group struct {
	account, key, model string
	day                 Day
}

// NewWriter makes a writer; Run makes it write.
func NewWriter(c WriterConfig) *Writer {
	w := &Writer{config: c, waiting: map[group]*Counts{}, room: make(chan struct{}), writing: make(chan []Record, 1)}
	w.writing <- nil
	return w
}

// Record takes a record. It waits only when too much is unwritten, as it is when
// the store fails or is slow. The record's own id is not used: each call counts.
//
// Errors: the context's, when it ends while there is no room.
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

// Totals returns what the store gives, with all that was added until now.
func (w *Writer) Totals(ctx context.Context, account string, first, last Day) ([]Total, error) {
	if err := w.write(ctx); err != nil {
		return nil, err
	}
	return w.config.Store.Totals(ctx, account, first, last)
}

// Run writes until the context ends, and then what is left. Record must not be
// called any more once the context has ended.
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

// drain writes what is left, as often as it takes within drainTime.
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

// write writes all that was added until now, once and in order. What fails
// stays for the next call, under its ids.
func (w *Writer) write(ctx context.Context) error {
	var records []Record
	select {
	case records = <-w.writing:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { w.writing <- records }()
	// What failed before goes first and alone, so that it is never more than
	// one gathering that is repeated.
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
	// Not the caller's end: an answer that nobody waits for leaves it unknown
	// what was written.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTime)
	defer cancel()
	return w.config.Store.Add(ctx, batch)
}

// take returns what waits as records, and makes room.
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
