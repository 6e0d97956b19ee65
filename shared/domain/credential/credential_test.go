package credential_test

import (
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/fault"
)

type keys struct {
	credential.Store
	credential.TokenStore
	byHash map[credential.Hash]credential.Key
	reads  int
	err    error
}

func (k *keys) FindKey(_ context.Context, hash credential.Hash) (credential.Key, error) {
	k.reads++
	if k.err != nil {
		return credential.Key{}, k.err
	}
	key, ok := k.byHash[hash]
	if !ok {
		return key, fault.New(fault.NotFound, "no such key")
	}
	return key, nil
}

func TestAuthenticateCachesAndRejects(t *testing.T) {
	ctx, now := t.Context(), time.Now()
	tiers := credential.DefaultTiers()
	secret, err := credential.NewSecret(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key, err := credential.NewKey(secret, "acme", "default", "ci", now)
	if err != nil {
		t.Fatal(err)
	}
	store := &keys{byHash: map[credential.Hash]credential.Key{key.Hash: key}}
	authenticator := credential.NewAuthenticator(store, tiers, func() time.Time { return now })

	principal, err := authenticator.Authenticate(ctx, secret)
	if err != nil || principal.Account() != "acme" || principal.Key.ID != key.ID || principal.Tier.PendingJobs != 100 {
		t.Fatalf("got %+v, %v", principal, err)
	}
	for name, wrong := range map[string]string{
		"none": "", "garbage": "hello", "unknown": "ck_0123456789", "another prefix": "sk_" + secret[3:],
		"too long": "ck_" + strings.Repeat("a", 129), "a character too many": secret + "!",
	} {
		if _, err := authenticator.Authenticate(ctx, wrong); !fault.Is(err, fault.Unauthorized) {
			t.Errorf("%s: got %v, want unauthorized", name, err)
		}
	}

	// A key is read once and cached for at most CacheAge.
	before := store.reads
	for range 10 {
		if _, err := authenticator.Authenticate(ctx, secret); err != nil {
			t.Fatal(err)
		}
	}
	if store.reads != before {
		t.Errorf("%d reads for a cached key", store.reads-before)
	}
	key.RevokedAt = now
	store.byHash[key.Hash] = key
	now = now.Add(credential.CacheAge)
	if _, err := authenticator.Authenticate(ctx, secret); !fault.Is(err, fault.Unauthorized) {
		t.Errorf("a revoked key still works after %s: got %v", credential.CacheAge, err)
	}

	// A store error does not invalidate the key and is not cached.
	now = now.Add(credential.CacheAge)
	store.err = errors.New("the disk is on fire")
	if _, err := authenticator.Authenticate(ctx, secret); err == nil || fault.Is(err, fault.Unauthorized) {
		t.Errorf("a failing store gave %v, want an internal error", err)
	}
	store.err, key.RevokedAt = nil, time.Time{}
	store.byHash[key.Hash] = key
	if _, err := authenticator.Authenticate(ctx, secret); err != nil {
		t.Errorf("after the store recovered: %v", err)
	}
}

func TestKeysAreStoredOnlyAsHashes(t *testing.T) {
	key, err := credential.NewKey("ck_development", "dev", "dev", "", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if key.ID != "key_"+credential.HashOf("ck_development").String()[:12] {
		t.Errorf("the id is %s", key.ID)
	}
	for _, c := range []struct{ secret, account string }{
		{"ck_short", "dev"}, {"sk_development", "dev"}, {"ck_has space1", "dev"}, {"ck_development", ""},
		{"ck_development", "a/b"}, {"ck_development", strings.Repeat("a", 65)},
	} {
		if _, err := credential.NewKey(c.secret, c.account, "dev", "", time.Now()); !fault.Is(err, fault.Invalid) {
			t.Errorf("key %q of account %q: got %v, want invalid", c.secret, c.account, err)
		}
	}
}

func TestTiersFileMatchesBuiltInTiers(t *testing.T) {
	source, err := os.ReadFile("tiers.yaml")
	if err != nil {
		t.Fatal(err)
	}
	tiers, err := credential.ParseTiers(source)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(credential.DefaultTiers(), tiers); diff != "" {
		t.Errorf("tiers.yaml differs from the built-in table (-built-in +file):\n%s", diff)
	}
}

func TestTiersAreParsedAndValidated(t *testing.T) {
	tiers, err := credential.ParseTiers([]byte("default: {pending_jobs: 3}\ngold: {pending_jobs: 0}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if tiers.Find("gold").PendingJobs != 0 || tiers.Find("gold").Name != "gold" || tiers.Find("gone").PendingJobs != 3 {
		t.Errorf("got %+v", tiers)
	}
	if tiers.Find("gold").Uploads != credential.DefaultUploads {
		t.Errorf("a tier without uploads has the limit %d", tiers.Find("gold").Uploads)
	}
	if tiers, err := credential.ParseTiers([]byte("default: {uploads: 0}\n")); err != nil ||
		tiers.Find("default").Uploads != 0 {
		t.Errorf("got %+v, %v", tiers, err)
	}
	text, err := tiers.JSON()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := credential.ParseTiersJSON(text); err != nil || !maps.Equal(got, tiers) {
		t.Errorf("after JSON: got %+v, %v, want %+v", got, err, tiers)
	}
	for _, wrong := range []string{"{", "{}", `{"default": {"Uploads": -1}}`} {
		if tiers, err := credential.ParseTiersJSON([]byte(wrong)); err == nil {
			t.Errorf("%s is %+v", wrong, tiers)
		}
	}
	for source, want := range map[string]string{
		"default: {uploads: -1}\n":                         "0 (unlimited) or more",
		"gold: {pending_jobs: 1}\n":                        `no tier "default"`,
		"default: {pending_jobs: -1}\n":                    "0 (unlimited) or more",
		"default:\n  pending_jobs: 1\n  pending_yobs: 1\n": "[3:3]",
		"default: [": "1",
	} {
		if _, err := credential.ParseTiers([]byte(source)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q in it", source, err, want)
		}
	}
}
