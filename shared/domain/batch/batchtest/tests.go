package batchtest

import (
	"fmt"
	"reflect"
	"sync"
	"time"

	"cutroom/shared/domain/batch"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/file"
	"cutroom/shared/domain/usage"
)

var tests = []test{
	{"Get returns the created batch", func(s *suite) { s.is(s.create("acme")) }},
	{"blobs of a batch count towards the account's storage until they are cleared and released", func(s *suite) {
		b, now := s.create("acme"), started
		storage := batch.Storage{Reservations: s.files, Now: func() time.Time { return now }}
		_, err := storage.Hold(s.ctx, batch.Reservation(b), 101, 100)
		s.fails(err, fault.Limited)
		held, err := storage.Hold(s.ctx, batch.Reservation(b), 60, 100)
		if err != nil || held.Bytes != 60 {
			s.Fatalf("the reservation holds %d bytes, %v", held.Bytes, err)
		}
		hold := func(bytes, want int64) {
			s.Helper()
			if got, err := storage.Hold(s.ctx, batch.Reservation(b), bytes, 0); err != nil || got.Bytes != want {
				s.Fatalf("the reservation holds %d bytes, not %d: %v", got.Bytes, want, err)
			}
		}
		other := func(id string, bytes int64) error {
			r := file.Reservation{Account: "acme", ID: id, Until: now.Add(time.Minute)}
			_, err := s.files.Reserve(s.ctx, r, bytes, bytes, 100, now)
			return err
		}
		hold(1, 60) // by a process that does not know of the reservation
		hold(90, 90)
		s.fails(other("a", 11), fault.Limited)
		if start, ok := s.files.(file.Retention); ok {
			if err := start.ReleaseAll(s.ctx); err != nil {
				s.Fatal(err)
			}
			s.fails(other("a", 11), fault.Limited)
		}
		now = now.Add(3 * batch.Window)
		s.fails(other("a", 11), fault.Limited)
		b = s.end(b, now)
		s.fails(other("a", 11), fault.Limited)
		for range 2 { // after a crash, all steps are repeated
			if err := storage.Release(s.ctx, b); err != nil {
				s.Fatal(err)
			}
			if err := s.Cleared(s.ctx, b.ID); err != nil {
				s.Fatal(err)
			}
		}
		if err := other("a", 100); err != nil {
			s.Error(err)
		}
	}},
	{"unknown batches and those of other accounts are not found", func(s *suite) {
		b := s.create("acme")
		_, err := s.Get(s.ctx, "other", b.ID)
		s.fails(err, fault.NotFound)
		_, err = s.Get(s.ctx, "acme", "batch_0")
		s.fails(err, fault.NotFound)
		s.fails(s.Change(s.ctx, batch.Validating, batch.Batch{ID: "batch_0", Account: "acme"}), fault.NotFound)
		b.Account = "other"
		s.fails(s.Change(s.ctx, batch.Validating, b), fault.NotFound)
	}},
	{"an account cannot exceed its limit of open batches", func(s *suite) {
		first := s.create("acme")
		s.create("other")
		second := first
		second.ID = "batch_b"
		s.fails(s.Create(s.ctx, second, 1, 0), fault.Limited)
		s.end(first, started)
		if err := s.Create(s.ctx, second, 1, 0); err != nil {
			s.Error(err)
		}
	}},
	{"Create deletes the oldest records of an account, except for batches that are not cleared", func(s *suite) {
		gone, kept, open := s.create("acme"), s.create("acme"), s.create("acme")
		other, finished := s.create("other"), s.create("acme")
		for _, b := range []*batch.Batch{&gone, &kept, &other, &finished} {
			*b = s.end(*b, started)
		}
		for _, b := range []batch.Batch{gone, other, finished} {
			if err := s.Cleared(s.ctx, b.ID); err != nil {
				s.Error(err)
			}
		}
		newest := open
		newest.ID = "batch_b"
		if err := s.Create(s.ctx, newest, 0, 2); err != nil {
			s.Error(err)
		}
		s.page("acme", "", 10, newest, finished, open, kept)
		s.page("other", "", 10, other)
	}},
	{"List pages through one account, newest first", func(s *suite) {
		one, two, three := s.create("acme"), s.create("acme"), s.create("acme")
		s.create("other")
		s.page("acme", "", 10, three, two, one)
		s.page("acme", "", 2, three, two)
		s.page("acme", two.ID, 2, one)
		s.page("acme", one.ID, 2)
		s.page("nobody", "", 2)
	}},
	{"Open lists the batches of all accounts that have not ended, oldest first", func(s *suite) {
		one, two, three := s.create("acme"), s.create("other"), s.create("acme")
		two.Status, two.CancellingAt = batch.Cancelling, started
		two = s.change(batch.Validating, two)
		s.end(one, started)
		open, err := s.Open(s.ctx)
		s.are(open, err, two, three)
	}},
	{"Change requires the current status and keeps the counts", func(s *suite) {
		b := s.create("acme")
		next := b
		next.Status, next.Total, next.Model, next.InProgressAt = batch.InProgress, 3, "m", started.Add(time.Second)
		next.Errors = []batch.Error{{Code: "c", Message: "m", Param: "p", Line: 2}}
		next = s.change(batch.Validating, next)
		s.save(b.ID, nil, batch.Chunk{Number: 0, Blob: "a", Lines: []int{1}})
		s.fails(s.Change(s.ctx, batch.Validating, b), fault.Conflict)
		next.Status, next.Answered = batch.Finalizing, 100
		next = s.change(batch.InProgress, next)
		next.Answered = 1
		s.is(next)
	}},
	{"Change rejects an outdated revision", func(s *suite) {
		b := s.create("acme")
		mine, other := b, b
		mine.Output, other.Output = "file_1", "file_2"
		mine = s.change(batch.Validating, mine)
		s.fails(s.Change(s.ctx, batch.Validating, other), fault.Conflict)
		s.is(mine)
	}},
	{"only one of several concurrent changes succeeds", func(s *suite) {
		b := s.create("acme")
		var group sync.WaitGroup
		results := make(chan error, 8)
		for range cap(results) {
			next := b
			next.Status = batch.Cancelling
			group.Go(func() { results <- s.Change(s.ctx, batch.Validating, next) })
		}
		group.Wait()
		succeeded := 0
		for range cap(results) {
			if err := <-results; err == nil {
				succeeded++
			} else {
				s.fails(err, fault.Conflict)
			}
		}
		if succeeded != 1 {
			s.Errorf("%d changes succeeded", succeeded)
		}
	}},
	{"saved results and their usage are counted", func(s *suite) {
		b := s.create("acme")
		answers := batch.Chunk{Number: 0, Blob: "a", Lines: []int{1, 3}}
		failures := batch.Chunk{Number: 1, Blob: "b", Failures: true, Lines: []int{2}}
		s.save(b.ID, []usage.Record{line(b, 1), line(b, 3)}, answers, failures)
		more := batch.Chunk{Number: 2, Blob: "c", Lines: []int{4}}
		s.save(b.ID, []usage.Record{line(b, 4)}, more)
		b.Answered, b.Failed = 3, 1
		s.is(b)
		s.used("acme", 3)
		chunks, err := s.Chunks(s.ctx, b.ID)
		if want := []batch.Chunk{answers, failures, more}; err != nil || !reflect.DeepEqual(chunks, want) {
			s.Errorf("the chunks are %+v, %v", chunks, err)
		}
	}},
	{"results that are saved twice count once", func(s *suite) {
		b := s.create("acme")
		for range 3 {
			s.save(b.ID, []usage.Record{line(b, 1)}, batch.Chunk{Number: 0, Blob: "a", Lines: []int{1}})
		}
		// Another run has made the call for the same line again.
		other := []usage.Record{{ID: "other", Account: "acme", Key: b.Key, Model: "m", Day: "2026-02-03",
			Counts: usage.Counts{Requests: 1, Cost: 7}}}
		s.fails(s.Save(s.ctx, b.ID, []batch.Chunk{{Number: 0, Blob: "x", Lines: []int{1, 2}}}, other), fault.Conflict)
		s.fails(s.Save(s.ctx, b.ID, []batch.Chunk{
			{Number: 1, Blob: "y", Lines: []int{3}}, {Number: 0, Blob: "x", Failures: true, Lines: []int{1}},
		}, other), fault.Conflict)
		b.Answered = 1
		s.is(b)
		s.used("acme", 1)
	}},
	{"only one of several concurrent runs saves a line", func(s *suite) {
		b := s.create("acme")
		var group sync.WaitGroup
		results := make(chan error, 4)
		for i := range cap(results) {
			chunk := batch.Chunk{Number: 0, Blob: fmt.Sprint("run-", i), Lines: []int{1}}
			group.Go(func() { results <- s.Save(s.ctx, b.ID, []batch.Chunk{chunk}, []usage.Record{line(b, 1)}) })
		}
		group.Wait()
		kept := 0
		for range cap(results) {
			if err := <-results; err == nil {
				kept++
			} else {
				s.fails(err, fault.Conflict)
			}
		}
		if kept != 1 {
			s.Errorf("%d runs saved the line, want 1", kept)
		}
		b.Answered = 1
		s.is(b)
		s.used("acme", 1)
	}},
	{"a thousand lines of two days and models are saved with their usage", func(s *suite) {
		b := s.create("acme")
		chunk := batch.Chunk{Number: 0, Blob: "a"}
		var used []usage.Record
		for i := range 1000 {
			one := line(b, i)
			one.Model = [...]string{"m", "n"}[i%2]
			if i >= 500 {
				one.Day = "2026-02-02"
			}
			chunk.Lines, used = append(chunk.Lines, i*3+1), append(used, one)
		}
		s.save(b.ID, used, chunk)
		b.Answered = 1000
		s.is(b)
		s.used("acme", 500)
		chunks, err := s.Chunks(s.ctx, b.ID)
		if err != nil || len(chunks) != 1 || !reflect.DeepEqual(chunks[0], chunk) {
			s.Errorf("%d chunks, %v", len(chunks), err)
		}
	}},
	{"Save rejects a batch that does not exist", func(s *suite) {
		err := s.Save(s.ctx, "batch_0", []batch.Chunk{{Number: 0, Blob: "a", Lines: []int{1}}},
			[]usage.Record{line(batch.Batch{ID: "batch_0", Account: "acme"}, 1)})
		s.fails(err, fault.NotFound)
		s.used("acme", 0)
	}},
	{"Save rejects results of a batch that has ended", func(s *suite) {
		b := s.create("acme")
		kept, late := batch.Chunk{Number: 0, Blob: "a", Lines: []int{1}}, batch.Chunk{Number: 1, Blob: "b", Lines: []int{1}}
		s.save(b.ID, []usage.Record{line(b, 1)}, kept)
		b = s.end(b, started)
		b.Answered = 1
		for range 2 {
			for _, chunk := range []batch.Chunk{late, {Number: 0, Blob: "b", Lines: []int{1}}} {
				s.fails(s.Save(s.ctx, b.ID, []batch.Chunk{chunk}, []usage.Record{line(b, 2)}), fault.Conflict)
			}
			s.is(b)
			s.used("acme", 1)
			if err := s.Cleared(s.ctx, b.ID); err != nil {
				s.Error(err)
			}
		}
	}},
	{"an ended batch is cleared once and its record deleted later", func(s *suite) {
		b, open := s.create("acme"), s.create("acme")
		s.save(b.ID, nil, batch.Chunk{Number: 0, Blob: "a", Lines: []int{1}})
		b = s.end(b, started)
		b.Answered = 1
		finished, err := s.Finished(s.ctx, 10)
		s.are(finished, err, b)
		s.known(b.ID, true)
		s.forget(started.Add(time.Hour)) // not yet cleared
		s.is(b)
		if err := s.Cleared(s.ctx, b.ID); err != nil {
			s.Error(err)
		}
		s.known(b.ID, false)
		finished, err = s.Finished(s.ctx, 10)
		s.are(finished, err)
		if chunks, err := s.Chunks(s.ctx, b.ID); err != nil || len(chunks) > 0 {
			s.Errorf("got chunks %+v, %v", chunks, err)
		}
		s.forget(started) // ended too recently
		s.is(b)
		s.forget(started.Add(time.Millisecond))
		s.page("acme", "", 10, open)
		s.known(open.ID, true)
	}},
}

func (s *suite) forget(before time.Time) {
	s.Helper()
	if err := s.Forget(s.ctx, before); err != nil {
		s.Error(err)
	}
}

func (s *suite) known(id string, want bool) {
	s.Helper()
	if known, err := s.Known(s.ctx, id); err != nil || known != want {
		s.Errorf("known: %v, %v; want %v", known, err, want)
	}
}
