package filetest

import (
	"time"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/file"
	"cutroom/shared/testkit/conformance"
)

func (s *suite) pending(want file.File) {
	s.Helper()
	got, err := s.Store.PendingUpload(s.ctx, want.ID)
	conformance.OK(s, err)
	s.same("pending file", got, want)
}

var pendingTests = []test{
	{"PendingUpload returns a pending file unchanged", func(s *suite) {
		f := s.createPending("acme")
		s.createPending("acme")
		s.pending(f)
	}},
	{"PendingUpload returns an overdue file until a sweep removes it", func(s *suite) {
		f := s.newPending("acme")
		f.UploadUntil = s.at(-1)
		s.keep(f)
		s.pending(f)
	}},
	{"a finalized file is found under the same id, with its MIME type and expiry", func(s *suite) {
		f := s.createPending("acme")
		f.Pending, f.MIME, f.ExpiresAt = false, "video/webm", s.at(4000)
		conformance.OK(s, s.Store.Finalize(s.ctx, f, s.now))
		s.known(f, s.now)
		s.known(f, s.at(3999))
		s.unknown(f, s.at(4000))
	}},
	{"a finalized file may be persistent", func(s *suite) {
		f := s.newPending("acme")
		f.ExpiresAt, f.Lifetime = time.Time{}, 0
		f = s.finalize(s.keep(f))
		s.known(f, s.now.AddDate(1000, 0, 0))
	}},
	{"finalizing changes only the MIME type and the expiry", func(s *suite) {
		want := s.createPending("acme")
		sent := want
		sent.Pending, sent.Filename, sent.Size, sent.Blob, sent.Account = false, "other", 99, "files/other", "zoo"
		conformance.OK(s, s.Store.Finalize(s.ctx, sent, s.now))
		want.Pending = false
		s.known(want, s.now)
		s.listed("acme", s.now, want)
		s.listed("zoo", s.now)
	}},
	{"PendingUpload also returns a finalized file", func(s *suite) {
		s.pending(s.finalize(s.createPending("acme")))
	}},
	{"finalizing a file again changes nothing", func(s *suite) {
		f := s.finalize(s.createPending("acme"))
		again := f
		again.MIME, again.ExpiresAt = "image/png", s.at(9)
		conformance.OK(s, s.Store.Finalize(s.ctx, again, s.now))
		s.known(f, s.at(10))
	}},
	{"a file that was never pending cannot be finalized", func(s *suite) {
		f := s.create("acme")
		_, err := s.Store.PendingUpload(s.ctx, f.ID)
		conformance.Fails(s, err, fault.NotFound)
		changed := f
		changed.MIME = "image/png"
		conformance.Fails(s, s.Store.Finalize(s.ctx, changed, s.now), fault.NotFound)
		s.known(f, s.now)
	}},
	{"an unknown file cannot be finalized", func(s *suite) {
		f := s.newPending("acme")
		_, err := s.Store.PendingUpload(s.ctx, f.ID)
		conformance.Fails(s, err, fault.NotFound)
		f.Pending = false
		conformance.Fails(s, s.Store.Finalize(s.ctx, f, s.now), fault.NotFound)
		s.unknown(f, s.now)
	}},
}

var retentionTests = []test{
	{"expired files and overdue pending files of all accounts are returned", func(s *suite) {
		expired, other := s.createUntil("acme", 10), s.createUntil("zoo", 20)
		broken := s.createPending("acme")
		s.create("acme")
		s.ended(s.at(9))
		s.ended(s.at(10), expired)
		s.ended(s.at(599), expired, other)
		s.ended(s.at(600), expired, other, broken)
	}},
	{"a persistent file never ends", func(s *suite) {
		f := s.new("acme")
		f.ExpiresAt, f.Lifetime = time.Time{}, 0
		s.keep(f)
		s.ended(s.now.AddDate(1000, 0, 0))
	}},
	{"a finalized file ends at its expiry", func(s *suite) {
		f := s.finalize(s.createPending("acme"))
		s.ended(s.at(3599))
		s.ended(s.at(3600), f)
	}},
	{"a pending file that was returned as ended can no longer be finalized", func(s *suite) {
		f := s.createPending("acme")
		s.ended(f.UploadUntil, f)
		conformance.Fails(s, s.Store.Finalize(s.ctx, f, s.now), fault.NotFound)
		_, err := s.Store.PendingUpload(s.ctx, f.ID)
		conformance.Fails(s, err, fault.NotFound)
		s.unknown(f, s.now)
	}},
	{"at most limit files are returned, and the rest after those are forgotten", func(s *suite) {
		want := map[string]bool{}
		for range 7 {
			want[s.createUntil("acme", 10).ID] = true
		}
		for _, n := range []int{3, 3, 1, 0} {
			files, err := s.Retention.Ended(s.ctx, s.at(10), 3)
			conformance.OK(s, err)
			s.same("files returned", len(files), n)
			for _, f := range files {
				if !want[f.ID] {
					s.Fatalf("%s was returned again, or is unknown", f.ID)
				}
				delete(want, f.ID)
				conformance.OK(s, s.Retention.Forget(s.ctx, f.ID))
			}
		}
	}},
	{"a blob is known while a record has it", func(s *suite) {
		stored, expired, pending := s.create("acme"), s.createUntil("acme", 10), s.createPending("acme")
		s.ended(s.at(10), expired)
		for _, f := range []file.File{stored, expired, pending} {
			s.knownBlob(f.Blob, true)
			conformance.OK(s, s.Retention.Forget(s.ctx, f.ID))
			s.knownBlob(f.Blob, false)
		}
		s.ended(s.at(10_000))
		s.listed("acme", s.now)
		deleted := s.create("acme")
		_, err := s.Store.Delete(s.ctx, "acme", deleted.ID, s.now)
		conformance.OK(s, err)
		s.knownBlob(deleted.Blob, false)
	}},
	{"ReleaseAll releases all reservations", func(s *suite) {
		s.reserve(s.reservation("acme"), 60, 100)
		s.reserve(s.reservation("zoo"), 60, 100)
		s.keep(s.sized("acme", 30))
		conformance.OK(s, s.Retention.ReleaseAll(s.ctx))
		s.stores("acme", 30, 100)
		s.stores("zoo", 0, 100)
	}},
	{"an extended pending file ends at its new time", func(s *suite) {
		f := s.createPending("acme")
		conformance.OK(s, s.Retention.Extend(s.ctx, f.ID, s.at(700)))
		conformance.OK(s, s.Retention.Extend(s.ctx, f.ID, s.at(650)))
		f.UploadUntil = s.at(700)
		s.pending(f)
		s.ended(s.at(699))
		s.ended(s.at(700), f)
		conformance.Fails(s, s.Retention.Extend(s.ctx, f.ID, s.at(800)), fault.NotFound)
		kept := s.finalize(s.createPending("acme"))
		conformance.Fails(s, s.Retention.Extend(s.ctx, kept.ID, s.at(800)), fault.NotFound)
	}},
	{"ended and forgotten files free their storage once", func(s *suite) {
		const limit = 10
		for _, seconds := range []float64{10, 100} {
			f := s.new("acme")
			f.Size, f.ExpiresAt = 5, s.at(seconds)
			conformance.OK(s, s.Store.Create(s.ctx, f, limit))
		}
		s.stores("acme", limit, limit)
		files, err := s.Retention.Ended(s.ctx, s.at(10), 10)
		conformance.OK(s, err)
		s.same("files returned", len(files), 1)
		s.stores("acme", 5, limit)
		conformance.OK(s, s.Retention.Forget(s.ctx, files[0].ID))
		s.stores("acme", 5, limit)
		f := s.new("acme")
		f.Size = 5
		conformance.OK(s, s.Store.Create(s.ctx, f, limit))
		conformance.OK(s, s.Retention.Forget(s.ctx, f.ID))
		s.stores("acme", 5, limit)
	}},
}

// ended checks which files Ended returns, in any order.
func (s *suite) ended(now time.Time, want ...file.File) {
	s.Helper()
	files, err := s.Retention.Ended(s.ctx, now, 100)
	conformance.OK(s, err)
	got := map[string]bool{}
	for _, f := range files {
		got[f.Account+" "+f.ID+" "+f.Blob] = true
	}
	expected := map[string]bool{}
	for _, f := range want {
		expected[f.Account+" "+f.ID+" "+f.Blob] = true
	}
	s.same("ended files", got, expected)
	s.same("number of ended files", len(files), len(want))
}

func (s *suite) knownBlob(blob string, want bool) {
	s.Helper()
	got, err := s.Retention.KnownBlob(s.ctx, blob)
	conformance.OK(s, err)
	s.same(blob+" is known", got, want)
}
