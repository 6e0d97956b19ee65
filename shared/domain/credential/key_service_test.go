package credential_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"testing"
	"time"

	"cutroom/shared/domain/credential"
)

type listing struct {
	credential.Store
	keys []credential.Key
}

func (l listing) ListKeys(context.Context, string) ([]credential.Key, error) { return l.keys, nil }

// The list includes active keys of any age.
func TestLongListOmitsFirstRevokedKeys(t *testing.T) {
	const revoked, working = 1100, 50
	begin := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	var keys []credential.Key
	for i := range working + revoked {
		key := credential.Key{ID: fmt.Sprintf("key_%012d", i), Account: "acme",
			CreatedAt: begin.Add(time.Duration(i) * time.Second)}
		if i >= working {
			key.RevokedAt = begin.Add(time.Duration(10_000-i) * time.Second) // the newest key was revoked first
		}
		keys = append(keys, key)
	}
	service := credential.KeyService{Store: listing{keys: keys}, Random: rand.Reader, Now: time.Now}
	got, err := service.List(t.Context(), "acme")
	if err != nil || len(got) != credential.MaxListedKeys {
		t.Fatalf("%d keys, %v", len(got), err)
	}
	if got[len(got)-1].ID != "key_000000000000" || got[0].ID != fmt.Sprintf("key_%012d", credential.MaxListedKeys-1) {
		t.Errorf("the list is from %s to %s", got[0].ID, got[len(got)-1].ID)
	}
	for i := range got[1:] {
		if got[i].CreatedAt.Before(got[i+1].CreatedAt) {
			t.Fatalf("%s precedes %s", got[i].ID, got[i+1].ID)
		}
	}
}
