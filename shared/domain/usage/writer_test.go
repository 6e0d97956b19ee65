package usage_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"cutroom/shared/domain/usage"
)

const day usage.Day = "2026-02-03"

type store struct {
	mu      sync.Mutex
	records map[string]usage.Record
	calls   int
	// fail returns the error for the nth call, starting at 1. If added is true, the records are added
	// despite the error.
	fail  func(call int) error
	added bool
	// If held is not nil, every call blocks until held is closed.
	held chan struct{}
}

func newStore() *store { return &store{records: map[string]usage.Record{}} }

func (s *store) Add(ctx context.Context, records []usage.Record) error {
	if s.held != nil {
		<-s.held
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	var err error
	if s.fail != nil {
		err = s.fail(s.calls)
	}
	if err == nil || s.added {
		for _, record := range records {
			s.records[record.ID] = record
		}
	}
	return err
}

func (s *store) Totals(context.Context, string, usage.Day, usage.Day, usage.Columns) ([]usage.Total, error) {
	return []usage.Total{{Day: day, Model: "a", Counts: s.total()}}, nil
}

func (s *store) total() usage.Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	var total usage.Counts
	for _, record := range s.records {
		total.Add(record.Counts)
	}
	return total
}

func newWriter(t *testing.T, s usage.Store) (w *usage.Writer, stop func()) {
	var ids atomic.Int64
	w = usage.NewWriter(usage.WriterConfig{
		Store: s, NewID: func() string { return fmt.Sprint("id-", ids.Add(1)) }, Logger: slog.New(slog.DiscardHandler),
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.Run(ctx)
	}()
	stop = func() {
		cancel()
		<-done
	}
	t.Cleanup(stop)
	return w, stop
}

func record(account, key, model string) usage.Record {
	return usage.Record{Account: account, Key: key, Model: model, Day: day,
		Counts: usage.Counts{Requests: 1, CompletionTokens: 10}}
}

func add(t *testing.T, w *usage.Writer, records ...usage.Record) {
	t.Helper()
	for _, r := range records {
		if err := w.Record(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAddAddsEveryCount(t *testing.T) {
	var sum, more usage.Counts
	for i, count := range more.All() {
		*count.Value = int64(i + 1)
	}
	sum.Add(more)
	sum.Add(more)
	for i, count := range sum.All() {
		if want := int64(2 * (i + 1)); *count.Value != want {
			t.Errorf("%s is %d, want %d", count.Name, *count.Value, want)
		}
	}
	if reflect.TypeFor[usage.Counts]().NumField() != len(sum.All()) {
		t.Error("All leaves out a count")
	}
}

func TestWriterSumsRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		w, _ := newWriter(t, s)
		add(t, w, record("acme", "k1", "a"), record("acme", "k1", "a"), record("acme", "k2", "a"), record("zoo", "k3", "b"))
		if got := s.total(); got != (usage.Counts{}) {
			t.Fatalf("%+v was written immediately", got)
		}
		time.Sleep(usage.WriteEvery)
		synctest.Wait()
		if got := s.total(); got.Requests != 4 || got.CompletionTokens != 40 {
			t.Fatalf("%+v was written, want all 4 calls", got)
		}
		if len(s.records) != 3 || s.calls != 1 {
			t.Errorf("%d records in %d calls, want 3 in one", len(s.records), s.calls)
		}
		time.Sleep(time.Minute)
		if s.calls != 1 {
			t.Errorf("the store was called %d times without records to write", s.calls-1)
		}
	})
}

func TestWriterCountsEachOfManyCallersOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		w, stop := newWriter(t, s)
		const callers, each = 20, 500
		var all sync.WaitGroup
		for caller := range callers {
			all.Go(func() {
				for range each {
					if err := w.Record(t.Context(), record("acme", fmt.Sprint("k", caller%3), "a")); err != nil {
						t.Error(err)
					}
				}
				time.Sleep(usage.WriteEvery / 3)
			})
		}
		all.Wait()
		stop()
		if got := s.total(); got.Requests != callers*each {
			t.Errorf("%d calls were counted, want %d", got.Requests, callers*each)
		}
	})
}

func TestWriterRepeatsFailedWrites(t *testing.T) {
	for _, taken := range []bool{false, true} {
		t.Run(fmt.Sprintf("taken=%v", taken), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStore()
				s.added = taken
				s.fail = func(call int) error {
					if call <= 5 {
						return errors.New("the disk is full")
					}
					return nil
				}
				w, _ := newWriter(t, s)
				for range 4 {
					add(t, w, record("acme", "k1", "a"))
					time.Sleep(usage.WriteEvery)
				}
				time.Sleep(10 * time.Second)
				if got := s.total(); got.Requests != 4 {
					t.Errorf("%d calls were counted, want 4", got.Requests)
				}
			})
		})
	}
}

func TestWriterWritesTheRestWhenStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.fail = func(call int) error {
			if call <= 3 {
				return errors.New("busy")
			}
			return nil
		}
		w, stop := newWriter(t, s)
		add(t, w, record("acme", "k1", "a"))
		stop()
		if got := s.total(); got.Requests != 1 {
			t.Errorf("%d calls were counted, want 1", got.Requests)
		}
	})
}

func TestWriterStopsIfTheStoreFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.fail = func(int) error { return errors.New("gone") }
		w, stop := newWriter(t, s)
		add(t, w, record("acme", "k1", "a"))
		stop()
	})
}

func TestWriterTotalsIncludeAllRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := newWriter(t, newStore())
		add(t, w, record("acme", "k1", "a"))
		totals, err := w.Totals(t.Context(), "acme", day, day, usage.All)
		if err != nil || len(totals) != 1 || totals[0].Requests != 1 {
			t.Errorf("the totals are %+v, %v", totals, err)
		}
	})
}

// Record blocks while too many records are unwritten, until its context ends.
func TestWriterLimitsItsMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.held = make(chan struct{})
		w, _ := newWriter(t, s)
		add(t, w, record("acme", "k1", "a"))
		time.Sleep(usage.WriteEvery)
		synctest.Wait() // the store has the record but does not return
		add(t, w, record("acme", "k1", "a"))
		const tried = 25_000
		var added atomic.Int64
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for i := range tried {
			all.Go(func() {
				if w.Record(ctx, record("acme", "k1", fmt.Sprint("model-", i))) == nil {
					added.Add(1)
				}
			})
		}
		synctest.Wait()
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := added.Load(); got == 0 || got > tried/2 {
			t.Fatalf("accepted %d of %d records while none was written", got, tried)
		}
		add(t, w, record("acme", "k1", "a")) // adding to an existing sum needs no capacity
		cancel()
		all.Wait()
		close(s.held)
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := s.total(); got.Requests != added.Load()+3 {
			t.Errorf("%d calls were counted, want %d", got.Requests, added.Load()+3)
		}
	})
}

func TestDayChangesAtMidnightUTC(t *testing.T) {
	t.Parallel()
	zone := time.FixedZone("", 9*60*60)
	midnight := time.Date(2026, 3, 1, 9, 0, 0, 0, zone)
	for range 2 { // the last day is kept
		for at, want := range map[time.Time]usage.Day{
			midnight.Add(-1): "2026-02-28", midnight: "2026-03-01", midnight.Add(24*time.Hour - 1): "2026-03-01",
			time.Unix(-1, 0): "1969-12-31", time.Unix(1, 0): "1970-01-01",
		} {
			if day := usage.DayOf(at); day != want {
				t.Errorf("%v is %s, want %s", at, day, want)
			}
		}
	}
}
