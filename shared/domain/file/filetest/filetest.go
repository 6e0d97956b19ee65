// Package filetest specifies the behavior of [file.Store] and [file.Retention].
package filetest

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/file"
	"cutroom/shared/testkit/conformance"
)

// Both stores of a Harness use the same records.
type Harness struct {
	Store file.Store
	// Retention is nil if the platform does the sweeper's work. Its tests are then skipped.
	Retention file.Retention
}

// Run calls `open` once per test. That function must register a cleanup that closes its stores.
func Run(t *testing.T, open func(t *testing.T) Harness) {
	conformance.Run(t, func(t *testing.T, group string, test test) {
		h := open(t)
		if group == "Retention" && h.Retention == nil {
			t.Skip("the platform does the sweeper's work")
		}
		test.run(&suite{T: t, Harness: h, ctx: conformance.Context(t), now: conformance.Tomorrow()})
	},
		conformance.About("Create", createTests), conformance.About("Limit", limitTests),
		conformance.About("Reserve", reserveTests), conformance.About("Exact", exactTests),
		conformance.About("Get", getTests), conformance.About("List", listTests), conformance.About("FindMD5", md5Tests),
		conformance.About("Delete", deleteTests), conformance.About("PendingUpload", pendingTests),
		conformance.About("Pages", pageTests), conformance.About("Races", raceTests),
		conformance.About("Retention", retentionTests),
	)
}

type test struct {
	name string
	run  func(s *suite)
}

func (t test) Says() string { return t.name }

type suite struct {
	*testing.T
	Harness
	ctx context.Context
	now time.Time
	ids atomic.Int64
}

func (s *suite) at(seconds float64) time.Time {
	return s.now.Add(time.Duration(seconds * float64(time.Second)))
}

const lifetime = time.Hour

// Ids of new files sort by creation time. Each file has a different MD5.
func (s *suite) new(account string) file.File {
	number := s.ids.Add(1)
	id := fmt.Sprintf("file_%027d", number)
	return file.File{
		ID: id, Account: account, Key: "key_0123456789ab", Filename: "été \"7\" <b>.mp4", MIME: "video/mp4", Purpose: "batch",
		Size: 1, MD5: md5Of(number), Blob: "files/" + id,
		CreatedAt: s.now, ExpiresAt: s.now.Add(lifetime), Lifetime: lifetime,
	}
}

func md5Of(number int64) string { return fmt.Sprintf("%032x", number) }

func (s *suite) newPending(account string) file.File {
	f := s.new(account)
	f.Pending, f.UploadUntil = true, s.at(600)
	return f
}

func (s *suite) create(account string) file.File {
	s.Helper()
	return s.keep(s.new(account))
}

func (s *suite) createUntil(account string, seconds float64) file.File {
	s.Helper()
	f := s.new(account)
	f.ExpiresAt = s.at(seconds)
	return s.keep(f)
}

func (s *suite) createPending(account string) file.File {
	s.Helper()
	return s.keep(s.newPending(account))
}

func (s *suite) keep(f file.File) file.File {
	s.Helper()
	conformance.OK(s, s.Store.Create(s.ctx, f, 0))
	return f
}

// finalize does not change the file's expiry.
func (s *suite) finalize(pending file.File) file.File {
	s.Helper()
	pending.Pending = false
	conformance.OK(s, s.Store.Finalize(s.ctx, pending, s.now))
	return pending
}

func (s *suite) known(want file.File, now time.Time) {
	s.Helper()
	got, err := s.Store.Get(s.ctx, want.Account, want.ID, now)
	conformance.OK(s, err)
	s.same("file", got, want)
}

func (s *suite) unknown(f file.File, now time.Time) {
	s.Helper()
	_, err := s.Store.Get(s.ctx, f.Account, f.ID, now)
	conformance.Fails(s, err, fault.NotFound)
	if found, err := s.Store.FindMD5(s.ctx, f.Account, f.MD5, now); err == nil && found.ID == f.ID {
		s.Fatalf("the MD5 finds %s", f.ID)
	}
	_, err = s.Store.Delete(s.ctx, f.Account, f.ID, now)
	conformance.Fails(s, err, fault.NotFound)
	for _, listed := range s.list(f.Account, 100, now) {
		if listed.ID == f.ID {
			s.Fatalf("the list has %s", f.ID)
		}
	}
}

const maxPages = 10_000

func (s *suite) list(account string, limit int, now time.Time) []file.File {
	s.Helper()
	var all []file.File
	after := ""
	for range maxPages {
		var page []file.File
		page, after = s.page(account, after, limit, now)
		all = append(all, page...)
		if after == "" {
			return all
		}
	}
	s.Fatalf("the list has not ended after %d pages", maxPages)
	return nil
}

// page reads a page and makes the checks that apply to every page.
func (s *suite) page(account, after string, limit int, now time.Time) (page []file.File, next string) {
	s.Helper()
	page, next, err := s.Store.List(s.ctx, account, after, limit, now)
	conformance.OK(s, err)
	if len(page) > limit {
		s.Fatalf("%d files on a page of %d", len(page), limit)
	}
	last := after
	for _, f := range page {
		if last != "" && f.ID >= last {
			s.Fatalf("%s follows %s", f.ID, last)
		}
		if f.Account != account || f.Pending || f.Expired(now) {
			s.Fatalf("the list of %s at %s has %+v", account, now, f)
		}
		last = f.ID
	}
	if next != "" && last != "" && next > last {
		s.Fatalf("after %s the list continues from %s", last, next)
	}
	if next != "" && next == after {
		s.Fatalf("the list stays at %s", after)
	}
	return page, next
}

func (s *suite) listed(account string, now time.Time, want ...file.File) {
	s.Helper()
	for _, limit := range []int{1, 2, max(1, len(want)), 1000} {
		got := s.list(account, limit, now)
		if len(got) == 0 && len(want) == 0 {
			continue
		}
		s.same(fmt.Sprintf("files by pages of %d", limit), got, want)
	}
}

func (s *suite) same(what string, got, want any) {
	s.Helper()
	conformance.Same(s, what, got, want)
}
