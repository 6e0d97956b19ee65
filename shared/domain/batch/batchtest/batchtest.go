// Package batchtest specifies the behavior of batch stores in tests that every adapter runs.
package batchtest

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"

	"cutroom/shared/domain/batch"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/file"
	"cutroom/shared/domain/usage"
	"cutroom/shared/testkit/conformance"
)

type Store interface {
	batch.Store
	batch.Progress
	batch.Retention
}

type Harness struct {
	Batches Store
	Usage   usage.Store
	Files   file.Store
}

func Run(t *testing.T, open func(t *testing.T) Harness) {
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			h := open(t)
			test.run(&suite{T: t, Store: h.Batches, usage: h.Usage, files: h.Files, ctx: conformance.Context(t)})
		})
	}
}

type test struct {
	name string
	run  func(s *suite)
}

type suite struct {
	*testing.T
	Store
	usage usage.Store
	files file.Store
	ctx   context.Context
	made  int
}

var started = time.Date(2026, 2, 3, 4, 5, 6, 789e6, time.UTC)

// create creates a batch that is newer than all others.
func (s *suite) create(account string) batch.Batch {
	s.Helper()
	s.made++
	id := fmt.Sprintf("batch_%027d", s.made)
	b := batch.Batch{
		ID: id, Account: account, Key: "key_0123456789ab", Endpoint: "/v1/embeddings", Input: "file_1",
		InputBlob: "batches/" + id + "/input", Metadata: map[string]string{"été": "\"7\" <b>"},
		OutputLifetime: time.Hour, Status: batch.Validating, CreatedAt: started, ExpiresAt: started.Add(batch.Window),
	}
	if err := s.Create(s.ctx, b, 0, 0); err != nil {
		s.Fatal(err)
	}
	return b
}

func (s *suite) change(from batch.Status, b batch.Batch) batch.Batch {
	s.Helper()
	if err := s.Change(s.ctx, from, b); err != nil {
		s.Fatal(err)
	}
	b.Revision++
	return b
}

func (s *suite) end(b batch.Batch, at time.Time) batch.Batch {
	s.Helper()
	from := b.Status
	b.Status, b.EndedAt = batch.Completed, at
	return s.change(from, b)
}

func (s *suite) is(want batch.Batch) {
	s.Helper()
	got, err := s.Get(s.ctx, want.Account, want.ID)
	if err != nil || !reflect.DeepEqual(got, want) {
		s.Errorf("the batch is\n%+v, %v; want\n%+v", got, err, want)
	}
}

func (s *suite) are(got []batch.Batch, err error, want ...batch.Batch) {
	s.Helper()
	if err != nil || len(got) != len(want) {
		s.Fatalf("%d batches, %v; want %d", len(got), err, len(want))
	}
	for i, b := range got {
		if !reflect.DeepEqual(b, want[i]) {
			s.Errorf("batch %d is\n%+v; want\n%+v", i, b, want[i])
		}
	}
}

func (s *suite) save(id string, used []usage.Record, chunks ...batch.Chunk) {
	s.Helper()
	if err := s.Save(s.ctx, id, chunks, used); err != nil {
		s.Fatal(err)
	}
}

func line(b batch.Batch, number int) usage.Record {
	return usage.Record{
		ID: fmt.Sprintf("%s/%d", b.ID, number), Account: b.Account, Key: b.Key, Model: "m", Day: "2026-02-03",
		Counts: usage.Counts{Requests: 1, PromptTokens: 10, Cost: 7},
	}
}

func (s *suite) used(account string, want int64) {
	s.Helper()
	totals, err := s.usage.Totals(s.ctx, account, "2026-02-03", "2026-02-03", usage.All)
	var got, cost int64
	for _, total := range totals {
		got, cost = got+total.Requests, cost+total.Cost
	}
	if err != nil || got != want || cost != 7*want {
		s.Errorf("%d requests that cost %d, %v; want %d", got, cost, err, want)
	}
}

func (s *suite) fails(err error, want fault.Code) {
	s.Helper()
	if !fault.Is(err, want) {
		s.Errorf("error %v, want %s", err, want)
	}
}

func (s *suite) page(account, after string, limit int, want ...batch.Batch) {
	s.Helper()
	got, err := s.List(s.ctx, account, after, limit)
	s.are(got, err, want...)
}
