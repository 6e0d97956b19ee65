package credentialtest

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"cutroom/shared/domain/audit"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/fault"
	"cutroom/shared/testkit/conformance"
)

func token(key credential.Key, number int) credential.Token {
	return credential.Token{
		Hash: credential.HashOf(fmt.Sprintf("ek_token-%08d", number)), Key: key,
		Scope: credential.Scope{
			Models: []string{"gen-2.5", "gen-latest"}, Origins: []string{"https://app.example:8443"},
			MaxSession: 90 * time.Second,
		},
		Metadata:  json.RawMessage(`{"user": "née \"7\"", "n": 9007199254740993}`),
		CreatedAt: created, ExpiresAt: created.Add(time.Minute),
		Verifier: bytes.Repeat([]byte{byte(number)}, ed25519.PublicKeySize),
	}
}

func (s *suite) foundToken(want credential.Token) {
	s.Helper()
	got, err := s.FindToken(s.ctx, want.Hash)
	conformance.OK(s, err)
	conformance.Same(s, "the token", got, want)
}

func (s *suite) noToken(hash credential.Hash) {
	s.Helper()
	_, err := s.FindToken(s.ctx, hash)
	conformance.Fails(s, err, fault.NotFound)
}

func (s *suite) createTokens(tokens []credential.Token) {
	s.Helper()
	const callers = 50
	errs := make([]error, len(tokens))
	var all sync.WaitGroup
	for caller := range callers {
		all.Go(func() {
			for i := caller; i < len(tokens); i += callers {
				errs[i] = s.CreateToken(s.ctx, tokens[i])
			}
		})
	}
	all.Wait()
	for _, err := range errs {
		conformance.OK(s, err)
	}
}

var tokenTests = []test{
	{"a created token is found unchanged by its hash, with its key", func(s *suite) {
		key := s.create("acme", 1, created)
		first, second := token(key, 1), token(s.create("zoo", 2, created), 2)
		conformance.OK(s, s.CreateToken(s.ctx, first))
		conformance.OK(s, s.CreateToken(s.ctx, second))
		s.foundToken(first)
		s.foundToken(second)
	}},
	{"a token may have no JWT", func(s *suite) {
		old := token(s.create("acme", 1, created), 1)
		old.Verifier = nil
		conformance.OK(s, s.CreateToken(s.ctx, old))
		s.foundToken(old)
	}},
	{"a token may have no scope and no metadata", func(s *suite) {
		plain := token(s.create("acme", 1, created), 1)
		plain.Scope, plain.Metadata = credential.Scope{}, nil
		conformance.OK(s, s.CreateToken(s.ctx, plain))
		s.foundToken(plain)
	}},
	{"a token shows the revocation of its key", func(s *suite) {
		key := s.create("acme", 1, created)
		minted := token(key, 1)
		conformance.OK(s, s.CreateToken(s.ctx, minted))
		s.foundToken(minted)
		_, err := s.RevokeKey(s.ctx, audit.Operator(revoked), key.ID)
		conformance.OK(s, err)
		minted.Key.RevokedAt = revoked
		s.foundToken(minted)
	}},
	{"a token is not found as a key, nor a key as a token", func(s *suite) {
		key := s.create("acme", 1, created)
		minted := token(key, 1)
		conformance.OK(s, s.CreateToken(s.ctx, minted))
		s.noToken(key.Hash)
		_, err := s.FindKey(s.ctx, minted.Hash)
		conformance.Fails(s, err, fault.NotFound)
		s.listed("acme", key)
	}},
	{"tokens that are created concurrently are all found unchanged", func(s *suite) {
		keys := []credential.Key{s.create("acme", 1, created), s.create("zoo", 2, created)}
		tokens := make([]credential.Token, 100)
		for i := range tokens {
			tokens[i] = token(keys[i%len(keys)], i)
			tokens[i].Scope.Models = []string{fmt.Sprint("model-", i)}
		}
		s.createTokens(tokens)
		for _, minted := range tokens {
			s.foundToken(minted)
		}
	}},
	{"new tokens of a revoked key show the revocation", func(s *suite) {
		key := s.create("acme", 1, created)
		minted := token(key, 1)
		var err error
		minted.Key, err = s.RevokeKey(s.ctx, audit.Operator(revoked), key.ID)
		conformance.OK(s, err)
		before := minted
		before.Key = key
		conformance.OK(s, s.CreateToken(s.ctx, before))
		s.foundToken(minted)
	}},
	{"an unknown token is not found", func(s *suite) {
		s.noToken(credential.HashOf("ek_unknown"))
		s.noToken(credential.Hash{})
	}},
}

var retentionTests = []test{
	{"a token that expired long ago is found until it is deleted", func(s *suite) {
		old := token(s.create("acme", 1, created), 1)
		conformance.OK(s, s.CreateToken(s.ctx, old))
		conformance.OK(s, s.retention.DeleteTokens(s.ctx, old.ExpiresAt))
		s.foundToken(old)
		conformance.OK(s, s.retention.DeleteTokens(s.ctx, old.ExpiresAt.Add(time.Millisecond)))
		s.noToken(old.Hash)
	}},
	{"deleting keeps tokens that have not expired", func(s *suite) {
		key := s.create("acme", 1, created)
		old, current := token(key, 1), token(key, 2)
		current.ExpiresAt = old.ExpiresAt.Add(time.Hour)
		conformance.OK(s, s.CreateToken(s.ctx, old))
		conformance.OK(s, s.CreateToken(s.ctx, current))
		for range 2 {
			conformance.OK(s, s.retention.DeleteTokens(s.ctx, old.ExpiresAt.Add(time.Second)))
			s.noToken(old.Hash)
			s.foundToken(current)
			s.found(key)
		}
	}},
	{"all expired tokens are deleted, even if there are many", func(s *suite) {
		key := s.create("acme", 1, created)
		tokens := make([]credential.Token, 1200)
		for i := range tokens {
			tokens[i] = token(key, i)
			tokens[i].ExpiresAt = created.Add(time.Duration(i) * time.Millisecond)
		}
		last := len(tokens) - 1
		s.createTokens(tokens)
		conformance.OK(s, s.retention.DeleteTokens(s.ctx, tokens[last].ExpiresAt))
		for _, minted := range tokens[:last] {
			s.noToken(minted.Hash)
		}
		s.foundToken(tokens[last])
	}},
}
