package filetest

import (
	"time"

	"cutroom/shared/domain/fault"
	"cutroom/shared/testkit/conformance"
)

var createTests = []test{
	{"a file is stored unchanged", func(s *suite) {
		f := s.new("acme")
		f.Size, f.Lifetime = 5<<30, 30*24*time.Hour
		f.ExpiresAt = f.CreatedAt.Add(f.Lifetime)
		s.keep(f)
		s.known(f, s.now)
		s.listed("acme", s.now, f)
	}},
	{"a persistent file has no expiry", func(s *suite) {
		f := s.new("acme")
		f.ExpiresAt, f.Lifetime = time.Time{}, 0
		s.keep(f)
		s.known(f, s.now.AddDate(1000, 0, 0))
		s.listed("acme", s.now.AddDate(1000, 0, 0), f)
	}},
	{"two files may have the same bytes and the same name", func(s *suite) {
		first, second := s.new("acme"), s.new("acme")
		second.MD5 = first.MD5
		s.keep(first)
		s.keep(second)
		s.listed("acme", s.now, second, first)
	}},
	{"a pending file is not found", func(s *suite) {
		f := s.createPending("acme")
		s.unknown(f, s.now)
		s.listed("acme", s.now)
	}},
}

var getTests = []test{
	{"an unknown file is not found", func(s *suite) {
		s.create("acme")
		s.unknown(s.new("acme"), s.now)
	}},
	{"another account's file is not found", func(s *suite) {
		f := s.create("acme")
		foreign := f
		foreign.Account = "zoo"
		s.unknown(foreign, s.now)
		s.known(f, s.now)
	}},
	{"a file is found until its expiry, and not at its expiry", func(s *suite) {
		f := s.createUntil("acme", 60)
		s.known(f, s.at(60).Add(-time.Millisecond))
		s.unknown(f, s.at(60))
		s.unknown(f, s.at(61))
	}},
}

var listTests = []test{
	{"an account without files has one empty page", func(s *suite) {
		s.create("acme")
		page, next := s.page("zoo", "", 100, s.now)
		if len(page) != 0 || next != "" {
			s.Fatalf("got %v and %q", page, next)
		}
	}},
	{"files are listed newest first, by account", func(s *suite) {
		first, other, second, third := s.create("acme"), s.create("zoo"), s.create("acme"), s.create("acme")
		s.listed("acme", s.now, third, second, first)
		s.listed("zoo", s.now, other)
	}},
	{"an account does not list files of an account whose name starts with its name", func(s *suite) {
		f := s.create("acme")
		s.create("acme.co")
		s.listed("acme", s.now, f)
	}},
	{"a page starts after the file with the id", func(s *suite) {
		first, second, third := s.create("acme"), s.create("acme"), s.create("acme")
		page, _ := s.page("acme", third.ID, 1, s.now)
		s.same("page", page, append(page[:0:0], second))
		page, _ = s.page("acme", second.ID, 100, s.now)
		s.same("page", page, append(page[:0:0], first))
		page, next := s.page("acme", first.ID, 100, s.now)
		if len(page) != 0 || next != "" {
			s.Fatalf("after the oldest file: %v and %q", page, next)
		}
	}},
	{"a page can start after the id of a deleted file", func(s *suite) {
		first, second, third := s.create("acme"), s.create("acme"), s.create("acme")
		_, err := s.Store.Delete(s.ctx, "acme", second.ID, s.now)
		conformance.OK(s, err)
		page, _ := s.page("acme", second.ID, 100, s.now)
		s.same("page", page, append(page[:0:0], first))
		s.listed("acme", s.now, third, first)
	}},
	{"expired files are omitted", func(s *suite) {
		first, second, third := s.createUntil("acme", 100), s.createUntil("acme", 10), s.createUntil("acme", 100)
		s.listed("acme", s.at(9), third, second, first)
		s.listed("acme", s.at(10), third, first)
		s.listed("acme", s.at(100))
	}},
	{"pending files are omitted, and are listed by id after they are finalized", func(s *suite) {
		first, second, third := s.create("acme"), s.createPending("acme"), s.create("acme")
		s.listed("acme", s.now, third, first)
		second = s.finalize(second)
		s.listed("acme", s.now, third, second, first)
	}},
	{"a few files among many expired files are all listed", func(s *suite) {
		oldest := s.create("acme")
		for range 120 {
			s.createUntil("acme", 10)
		}
		middle := s.create("acme")
		for range 120 {
			s.createUntil("acme", 10)
		}
		s.listed("acme", s.at(10), middle, oldest)
	}},
}

var md5Tests = []test{
	{"the newest of several uploads of the same bytes is found", func(s *suite) {
		first, second := s.new("acme"), s.new("acme")
		second.MD5 = first.MD5
		s.keep(first)
		s.keep(second)
		s.findsMD5("acme", first.MD5, s.now, second.ID)
	}},
	{"the newest upload that has not expired is found", func(s *suite) {
		first, second, third := s.new("acme"), s.new("acme"), s.new("acme")
		second.MD5, third.MD5 = first.MD5, first.MD5
		second.ExpiresAt, third.ExpiresAt = s.at(20), s.at(10)
		s.keep(first)
		s.keep(second)
		s.keep(third)
		s.findsMD5("acme", first.MD5, s.at(9), third.ID)
		s.findsMD5("acme", first.MD5, s.at(10), second.ID)
		s.findsMD5("acme", first.MD5, s.at(20), first.ID)
	}},
	{"the newest upload that was not deleted is found", func(s *suite) {
		first, second := s.new("acme"), s.new("acme")
		second.MD5 = first.MD5
		s.keep(first)
		s.keep(second)
		_, err := s.Store.Delete(s.ctx, "acme", second.ID, s.now)
		conformance.OK(s, err)
		s.findsMD5("acme", first.MD5, s.now, first.ID)
		_, err = s.Store.Delete(s.ctx, "acme", first.ID, s.now)
		conformance.OK(s, err)
		_, err = s.Store.FindMD5(s.ctx, "acme", first.MD5, s.now)
		conformance.Fails(s, err, fault.NotFound)
	}},
	{"a pending file does not hide an older file, and is found after it is finalized", func(s *suite) {
		first, second := s.new("acme"), s.newPending("acme")
		second.MD5 = first.MD5
		s.keep(first)
		s.keep(second)
		s.findsMD5("acme", first.MD5, s.now, first.ID)
		s.finalize(second)
		s.findsMD5("acme", first.MD5, s.now, second.ID)
	}},
	{"another account's bytes are not found", func(s *suite) {
		f := s.create("acme")
		_, err := s.Store.FindMD5(s.ctx, "zoo", f.MD5, s.now)
		conformance.Fails(s, err, fault.NotFound)
	}},
	{"an unknown MD5 is not found", func(s *suite) {
		s.create("acme")
		_, err := s.Store.FindMD5(s.ctx, "acme", md5Of(1<<40), s.now)
		conformance.Fails(s, err, fault.NotFound)
	}},
}

func (s *suite) findsMD5(account, md5 string, now time.Time, id string) {
	s.Helper()
	f, err := s.Store.FindMD5(s.ctx, account, md5, now)
	conformance.OK(s, err)
	s.same("id", f.ID, id)
	s.known(f, now)
}

var deleteTests = []test{
	{"Delete returns the file and deletes it", func(s *suite) {
		f, other := s.create("acme"), s.create("acme")
		got, err := s.Store.Delete(s.ctx, "acme", f.ID, s.now)
		conformance.OK(s, err)
		s.same("deleted file", got, f)
		s.unknown(f, s.now)
		s.listed("acme", s.now, other)
	}},
	{"another account cannot delete a file", func(s *suite) {
		f := s.create("acme")
		_, err := s.Store.Delete(s.ctx, "zoo", f.ID, s.now)
		conformance.Fails(s, err, fault.NotFound)
		s.known(f, s.now)
	}},
	{"a pending file cannot be deleted", func(s *suite) {
		f := s.createPending("acme")
		_, err := s.Store.Delete(s.ctx, "acme", f.ID, s.now)
		conformance.Fails(s, err, fault.NotFound)
		s.known(s.finalize(f), s.now)
	}},
	{"a finalized file can be deleted, and PendingUpload no longer returns it", func(s *suite) {
		f := s.finalize(s.createPending("acme"))
		got, err := s.Store.Delete(s.ctx, "acme", f.ID, s.now)
		conformance.OK(s, err)
		s.same("deleted file", got, f)
		s.unknown(f, s.now)
		conformance.Fails(s, s.Store.Finalize(s.ctx, f, s.now), fault.NotFound)
		_, err = s.Store.PendingUpload(s.ctx, f.ID)
		conformance.Fails(s, err, fault.NotFound)
	}},
}
