package credentialtest

import (
	"encoding/json"
	"strings"
	"sync"
	"time"

	"cutroom/shared/domain/audit"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/fault"
	"cutroom/shared/testkit/conformance"
)

func (s *suite) entries(account string, query audit.Query) []audit.Entry {
	s.Helper()
	if query.Limit == 0 {
		query.Limit = 100
	}
	found, err := s.log.Entries(s.ctx, account, query)
	conformance.OK(s, err)
	return found
}

func by(key credential.Key, at time.Time) audit.Origin {
	return audit.Origin{By: key.ID, At: at, RequestID: "req_7"}
}

var auditTests = []test{
	{"a key is created with its entry, which has no secret", func(s *suite) {
		key, admin := s.key("acme", 1, created), s.create("zoo", 2, created)
		key.ExpiresAt, key.Limits.Models = revoked, []string{"gen-2.5"}
		conformance.OK(s, s.CreateKey(s.ctx, audit.Origin{By: admin.ID, At: created, RequestID: "req_1"}, key))
		got := s.entries("acme", audit.Query{})
		if len(got) != 1 || got[0].Before != nil || !audit.IsID(got[0].ID) {
			s.Fatalf("the log is %+v", got)
		}
		want := audit.Entry{
			ID: got[0].ID, Account: "acme", Action: audit.KeyCreated, Subject: key.ID, After: got[0].After,
			Origin: audit.Origin{By: admin.ID, At: created, RequestID: "req_1"},
		}
		conformance.Same(s, "the entry", got[0], want)
		var after struct {
			ID, Label string
			ExpiresAt time.Time `json:"expires_at"`
			Models    []string
		}
		conformance.OK(s, json.Unmarshal(got[0].After, &after))
		if after.ID != key.ID || after.Label != key.Label || !after.ExpiresAt.Equal(revoked) || len(after.Models) != 1 ||
			strings.Contains(string(got[0].After), key.Hash.String()) {
			s.Fatalf("the entry's state after it is %s", got[0].After)
		}
	}},
	{"a key is revoked with one entry, however often it is revoked", func(s *suite) {
		admin, key := s.create("acme", 1, created), s.create("acme", 2, created.Add(time.Millisecond))
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				if _, err := s.RevokeKey(s.ctx, by(admin, revoked), key.ID); err != nil {
					s.Error(err)
				}
			})
		}
		all.Wait()
		_, err := s.RevokeKey(s.ctx, audit.Operator(revoked.Add(time.Hour)), key.ID)
		conformance.OK(s, err)
		got := s.entries("acme", audit.Query{})
		if len(got) != 3 || got[0].Action != audit.KeyRevoked || got[0].Subject != key.ID || got[0].By != admin.ID ||
			got[0].RequestID != "req_7" || !got[0].At.Equal(revoked) {
			s.Fatalf("the log is %+v", got)
		}
		var before, after struct {
			RevokedAt *time.Time `json:"revoked_at"`
		}
		conformance.OK(s, json.Unmarshal(got[0].Before, &before))
		conformance.OK(s, json.Unmarshal(got[0].After, &after))
		if before.RevokedAt != nil || after.RevokedAt == nil || !after.RevokedAt.Equal(revoked) {
			s.Fatalf("before %s, after %s", got[0].Before, got[0].After)
		}
		if !audit.Operator(created).IsOperator() || got[1].By != audit.Operator(created).By {
			s.Fatalf("the operator's entry is %+v", got[1])
		}
	}},
	{"a rejected change leaves no entry", func(s *suite) {
		key, foreign := s.create("acme", 1, created), s.create("zoo", 2, created)
		again := key
		again.Label = "another"
		conformance.Fails(s, s.CreateKey(s.ctx, audit.Operator(revoked), again), fault.Conflict)
		_, err := s.RevokeKey(s.ctx, by(foreign, revoked), key.ID)
		conformance.Fails(s, err, fault.NotFound)
		_, err = s.RevokeKey(s.ctx, audit.Origin{By: "key_unknown", At: revoked}, key.ID)
		conformance.Fails(s, err, fault.Unauthorized)
		_, err = s.RevokeKey(s.ctx, audit.Operator(revoked), "key_unknown")
		conformance.Fails(s, err, fault.NotFound)
		for _, account := range []string{"acme", "zoo"} {
			if got := s.entries(account, audit.Query{}); len(got) != 1 {
				s.Fatalf("the log of %s is %+v", account, got)
			}
		}
	}},
	{"entries are read newest first, by account, time and page", func(s *suite) {
		var subjects []string
		for number := range 7 {
			at := created.Add(time.Duration(number) * time.Second)
			subjects = append(subjects, s.create("acme", number, at).ID)
		}
		s.create("acme.co", 7, created)
		expect := func(query audit.Query, want ...string) []audit.Entry {
			s.Helper()
			got := s.entries("acme", query)
			var found []string
			for _, e := range got {
				found = append(found, e.Subject)
			}
			conformance.SameList(s, "the subjects", found, want)
			return got
		}
		first := expect(audit.Query{Limit: 3}, subjects[6], subjects[5], subjects[4])
		second := expect(audit.Query{Limit: 3, Before: first[2].ID}, subjects[3], subjects[2], subjects[1])
		third := expect(audit.Query{Limit: 3, Before: second[2].ID}, subjects[0])
		expect(audit.Query{Limit: 3, Before: third[0].ID})
		early, late := created.Add(2*time.Second), created.Add(4*time.Second)
		expect(audit.Query{From: late}, subjects[6], subjects[5], subjects[4])
		expect(audit.Query{To: early}, subjects[1], subjects[0])
		expect(audit.Query{From: early, To: late, Limit: 1}, subjects[3])
		expect(audit.Query{From: early, To: late, Before: first[2].ID}, subjects[3], subjects[2])
		expect(audit.Query{From: late, To: early})
	}},
}
