// Package credentialtest specifies the behavior of [credential.Store], [credential.TokenStore] and
// [credential.TokenRetention], and of the [audit.Log] that records key changes.
package credentialtest

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"testing"
	"time"

	"cutroom/shared/domain/audit"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/fault"
	"cutroom/shared/testkit/conformance"
)

type Store interface {
	credential.Store
	credential.TokenStore
}

// All stores of a Harness use the same records.
type Harness struct {
	Store Store
	Log   audit.Log
	// Retention is nil if the platform deletes expired tokens. In that case its tests are skipped.
	Retention credential.TokenRetention
}

// Run calls `open` once per test. That function must register a cleanup that closes its stores.
func Run(t *testing.T, open func(t *testing.T) Harness) {
	conformance.Run(t, func(t *testing.T, group string, test test) {
		h := open(t)
		if group == "Retention" && h.Retention == nil {
			t.Skip("the platform removes tokens")
		}
		test.run(&suite{T: t, Store: h.Store, log: h.Log, retention: h.Retention, ctx: conformance.Context(t)})
	},
		conformance.About("Keys", keyTests), conformance.About("Tokens", tokenTests),
		conformance.About("Audit", auditTests),
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
	Store
	log       audit.Log
	retention credential.TokenRetention
	ctx       context.Context
}

var (
	created = conformance.Tomorrow()
	revoked = created.Add(time.Hour)
)

func (s *suite) key(account string, number int, at time.Time) credential.Key {
	s.Helper()
	key, err := credential.NewKey(fmt.Sprintf("ck_secret-%08d", number), account, "default", "a label, \"quoted\" – née",
		at)
	conformance.OK(s, err)
	return key
}

func (s *suite) create(account string, number int, at time.Time) credential.Key {
	s.Helper()
	key := s.key(account, number, at)
	conformance.OK(s, s.CreateKey(s.ctx, audit.Operator(key.CreatedAt), key))
	return key
}

func (s *suite) found(want credential.Key) {
	s.Helper()
	got, err := s.FindKey(s.ctx, want.Hash)
	conformance.OK(s, err)
	conformance.Same(s, "the key", got, want)
}

func (s *suite) listed(account string, want ...credential.Key) {
	s.Helper()
	got, err := s.ListKeys(s.ctx, account)
	conformance.OK(s, err)
	conformance.SameList(s, "the list of keys", got, want)
}

var keyTests = []test{
	{"a created key is found unchanged by its hash", func(s *suite) {
		key := s.create("acme", 1, created)
		s.create("acme", 2, created)
		s.found(key)
	}},
	{"a key may have no label", func(s *suite) {
		key := s.key("acme", 1, created)
		key.Label = ""
		conformance.OK(s, s.CreateKey(s.ctx, audit.Operator(key.CreatedAt), key))
		s.found(key)
	}},
	{"a key may be created as revoked", func(s *suite) {
		key := s.key("acme", 1, created)
		key.RevokedAt = revoked
		conformance.OK(s, s.CreateKey(s.ctx, audit.Operator(key.CreatedAt), key))
		s.found(key)
	}},
	{"the admin flag of a key is stored", func(s *suite) {
		key := s.key("acme", 1, created)
		key.Admin = true
		conformance.OK(s, s.CreateKey(s.ctx, audit.Operator(key.CreatedAt), key))
		other := s.create("acme", 2, created.Add(time.Second))
		s.found(key)
		s.listed("acme", key, other)
		got, err := s.RevokeKey(s.ctx, audit.Operator(revoked), key.ID)
		conformance.OK(s, err)
		if !got.Admin {
			s.Fatalf("after revocation it is %+v", got)
		}
	}},
	{"the expiry and the limits of a key are stored", func(s *suite) {
		key, models, routes := s.key("acme", 1, created), s.key("acme", 2, created), s.key("acme", 3, created)
		key.ExpiresAt = created.Add(90 * time.Minute)
		key.Limits = credential.Limits{
			Models: []string{"gen-2.5", "small/chat:1"},
			Routes: []credential.RouteGroup{credential.JobRoutes, credential.KeyRoutes},
		}
		models.Limits.Models, routes.Limits.Routes = key.Limits.Models[:1], key.Limits.Routes[1:]
		for _, limited := range []credential.Key{key, models, routes} {
			conformance.OK(s, s.CreateKey(s.ctx, audit.Operator(limited.CreatedAt), limited))
			s.found(limited)
			minted := token(limited, 7)
			minted.Hash[0] = limited.Hash[0]
			conformance.OK(s, s.CreateToken(s.ctx, minted))
			s.foundToken(minted)
		}
		got, err := s.RevokeKey(s.ctx, audit.Operator(revoked), key.ID)
		conformance.OK(s, err)
		key.RevokedAt = revoked
		conformance.Same(s, "the key", got, key)
	}},
	{"an expired key cannot create or revoke keys", func(s *suite) {
		key, by := s.create("acme", 1, created), s.key("acme", 2, created)
		by.ExpiresAt = revoked
		conformance.OK(s, s.CreateKey(s.ctx, audit.Operator(by.CreatedAt), by))
		conformance.Fails(s, s.CreateKey(s.ctx, audit.Origin{By: by.ID, At: revoked}, s.key("acme", 3, created)), fault.Unauthorized)
		conformance.OK(s, s.CreateKey(s.ctx, audit.Origin{By: by.ID, At: created}, s.key("acme", 4, created)))
		_, err := s.RevokeKey(s.ctx, audit.Origin{By: by.ID, At: revoked}, key.ID)
		conformance.Fails(s, err, fault.Unauthorized)
		s.found(key)
		key.RevokedAt = revoked.Add(-time.Millisecond)
		_, err = s.RevokeKey(s.ctx, audit.Origin{By: by.ID, At: key.RevokedAt}, key.ID)
		conformance.OK(s, err)
		s.found(key)
	}},
	{"an unknown hash is not found", func(s *suite) {
		s.create("acme", 1, created)
		_, err := s.FindKey(s.ctx, s.key("acme", 2, created).Hash)
		conformance.Fails(s, err, fault.NotFound)
		_, err = s.FindKey(s.ctx, credential.Hash{})
		conformance.Fails(s, err, fault.NotFound)
	}},
	{"a second key with the same hash is a conflict and changes nothing", func(s *suite) {
		key := s.create("acme", 1, created)
		again := key
		again.Account, again.Label = "other", "another"
		conformance.Fails(s, s.CreateKey(s.ctx, audit.Operator(again.CreatedAt), again), fault.Conflict)
		s.found(key)
		s.listed("other")
	}},
	{"one of many concurrent creations of a key succeeds", func(s *suite) {
		const racers = 20
		errs := make([]error, racers)
		var all sync.WaitGroup
		for racer := range racers {
			key := s.key(fmt.Sprint("account", racer), 1, created)
			all.Go(func() { errs[racer] = s.CreateKey(s.ctx, audit.Operator(key.CreatedAt), key) })
		}
		all.Wait()
		var winners []int
		for racer, err := range errs {
			if err == nil {
				winners = append(winners, racer)
			} else {
				conformance.Fails(s, err, fault.Conflict)
			}
		}
		if len(winners) != 1 {
			s.Fatalf("%d succeeded", len(winners))
		}
		s.found(s.key(fmt.Sprint("account", winners[0]), 1, created))
	}},
	{"keys are listed by account, oldest first", func(s *suite) {
		newest := s.create("acme", 1, created.Add(2*time.Millisecond))
		oldest := s.create("acme", 2, created)
		other := s.create("zoo", 3, created.Add(-time.Hour))
		middle := s.create("acme", 4, created.Add(time.Millisecond))
		s.listed("acme", oldest, middle, newest)
		s.listed("zoo", other)
		s.listed("nobody")
		s.listed("", other, oldest, middle, newest)
	}},
	{"the keys of an account do not include those of an account whose name starts with its name", func(s *suite) {
		s.create("acme.co", 1, created)
		s.listed("acme")
	}},
	{"a revoked key is returned and found as revoked", func(s *suite) {
		key, other := s.create("acme", 1, created), s.create("acme", 2, created.Add(time.Second))
		got, err := s.RevokeKey(s.ctx, audit.Operator(revoked), key.ID)
		conformance.OK(s, err)
		key.RevokedAt = revoked
		conformance.Same(s, "the key", got, key)
		s.found(key)
		s.found(other)
		s.listed("acme", key, other)
	}},
	{"revoking a key again changes nothing", func(s *suite) {
		key := s.create("acme", 1, created)
		first, err := s.RevokeKey(s.ctx, audit.Operator(revoked), key.ID)
		conformance.OK(s, err)
		again, err := s.RevokeKey(s.ctx, audit.Operator(revoked.Add(time.Hour)), key.ID)
		conformance.OK(s, err)
		conformance.Same(s, "the key", again, first)
		s.found(first)
	}},
	{"a key can be revoked only by a key of its own account", func(s *suite) {
		key, own, foreign := s.create("acme", 1, created), s.create("acme", 2, created), s.create("zoo", 3, created)
		_, err := s.RevokeKey(s.ctx, audit.Origin{By: foreign.ID, At: revoked}, key.ID)
		conformance.Fails(s, err, fault.NotFound)
		_, err = s.RevokeKey(s.ctx, audit.Origin{By: own.ID, At: revoked}, "key_unknown")
		conformance.Fails(s, err, fault.NotFound)
		s.found(key)
		key.RevokedAt = revoked
		got, err := s.RevokeKey(s.ctx, audit.Origin{By: own.ID, At: revoked}, key.ID)
		conformance.OK(s, err)
		conformance.Same(s, "the key", got, key)
		again, err := s.RevokeKey(s.ctx, audit.Origin{By: own.ID, At: revoked.Add(time.Hour)}, key.ID)
		conformance.OK(s, err)
		conformance.Same(s, "the key", again, key)
		s.found(own)
	}},
	{"a revoked or unknown key cannot revoke keys", func(s *suite) {
		key, by := s.create("acme", 1, created), s.create("acme", 2, created)
		_, err := s.RevokeKey(s.ctx, audit.Operator(revoked), by.ID)
		conformance.OK(s, err)
		for _, id := range []string{by.ID, "key_unknown"} {
			_, err = s.RevokeKey(s.ctx, audit.Origin{By: id, At: revoked}, key.ID)
			conformance.Fails(s, err, fault.Unauthorized)
		}
		s.found(key)
	}},
	{"one of two keys that revoke each other concurrently remains", func(s *suite) {
		const racers = 4
		keys := make([]credential.Key, racers)
		for racer := range racers {
			keys[racer] = s.create("acme", racer, created)
		}
		var all sync.WaitGroup
		for by := range keys {
			for other := range keys {
				if by == other {
					continue
				}
				all.Go(func() {
					if _, err := s.RevokeKey(s.ctx, audit.Origin{By: keys[by].ID, At: revoked}, keys[other].ID); err != nil && !fault.Is(err,
						fault.Unauthorized) {
						s.Errorf("%d revokes %d: %v", by, other, err)
					}
				})
			}
		}
		all.Wait()
		left := 0
		for _, key := range keys {
			got, err := s.FindKey(s.ctx, key.Hash)
			conformance.OK(s, err)
			if got.RevokedAt.IsZero() {
				left++
			}
		}
		if left != 1 {
			s.Fatalf("%d keys remain", left)
		}
	}},
	{"an account keeps the newest of the keys that no longer work", func(s *suite) {
		by := s.create("acme", credential.MaxListedKeys, created)
		keys, making := make([]credential.Key, credential.MaxListedKeys), sync.WaitGroup{}
		for worker := range 8 {
			making.Go(func() {
				for number := worker; number < len(keys); number += 8 {
					key := s.key("acme", number, created)
					key.RevokedAt = created.Add(time.Duration(number) * time.Second)
					if number == 1 {
						key.RevokedAt, key.ExpiresAt = time.Time{}, key.RevokedAt
					}
					if err := s.CreateKey(s.ctx, audit.Operator(created), key); err != nil {
						s.Error(err)
					}
					keys[number] = key
				}
			})
		}
		making.Wait()
		service := credential.KeyService{Store: s, Random: rand.Reader, Now: func() time.Time { return revoked }}
		_, made, err := service.Create(s.ctx, by, "", credential.KeyRequest{Label: "new"})
		conformance.OK(s, err)
		for _, account := range []string{"acme", ""} {
			got, err := s.ListKeys(s.ctx, account)
			conformance.OK(s, err)
			left := map[string]bool{}
			for _, key := range got {
				left[key.ID] = true
			}
			if len(got) != credential.MaxListedKeys || !left[by.ID] || !left[made.ID] || left[keys[0].ID] || left[keys[1].ID] {
				s.Fatalf("%d keys are listed", len(got))
			}
		}
		conformance.Fails(s, s.CreateKey(s.ctx, audit.Operator(revoked), keys[0]), fault.Conflict)
		found, err := s.FindKey(s.ctx, keys[1].Hash)
		if !fault.Is(err, fault.NotFound) && (err != nil || found.Works(revoked)) {
			s.Fatalf("a forgotten key is found as %+v, %v", found, err)
		}
		log := s.entries("acme", audit.Query{Limit: 2 * credential.MaxListedKeys})
		if len(log) != credential.MaxListedKeys+2 {
			s.Fatalf("the log has %d entries", len(log))
		}
	}},
	{"an unknown id cannot be revoked", func(s *suite) {
		_, err := s.RevokeKey(s.ctx, audit.Operator(revoked), "key_unknown")
		conformance.Fails(s, err, fault.NotFound)
	}},
}
