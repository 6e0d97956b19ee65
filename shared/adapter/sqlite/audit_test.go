package sqlite_test

import (
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	"cutroom/shared/adapter/sqlite"
	"cutroom/shared/domain/audit"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/fault"
)

func auditKey(t *testing.T, secret string) credential.Key {
	t.Helper()
	key, err := credential.NewKey(secret, "acme", "default", "", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// A change fails if its audit entry cannot be written. Entries never change.
func TestChangeNeedsItsAuditEntry(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cutroom.db")
	keys := openAt(t, path).Keys()
	made, refused := auditKey(t, "ck_0000000001"), auditKey(t, "ck_0000000002")
	if err := keys.CreateKey(t.Context(), audit.Operator(made.CreatedAt), made); err != nil {
		t.Fatal(err)
	}
	raw, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	if _, err := raw.ExecContext(t.Context(), "update audit set by = 'key_other'"); err == nil {
		t.Error("an entry was changed")
	}
	if _, err := raw.ExecContext(t.Context(), `create trigger no_entry before insert on audit begin
		select raise(abort, 'no'); end`); err != nil {
		t.Fatal(err)
	}
	if err := keys.CreateKey(t.Context(), audit.Operator(refused.CreatedAt), refused); err == nil {
		t.Error("a key was created without an entry")
	}
	if _, err := keys.FindKey(t.Context(), refused.Hash); !fault.Is(err, fault.NotFound) {
		t.Errorf("the key without an entry: %v", err)
	}
	if _, err := keys.RevokeKey(t.Context(), audit.Operator(time.Now()), made.ID); err == nil {
		t.Error("a key was revoked without an entry")
	}
	if kept, err := keys.FindKey(t.Context(), made.Hash); err != nil || !kept.RevokedAt.IsZero() {
		t.Errorf("the key is %+v, %v", kept, err)
	}
}

func TestEntriesExpireWithTrustedClock(t *testing.T) {
	now, settled := time.Now(), false
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "cutroom.db"), sqlite.Options{
		Now: func() time.Time { return now }, Settled: func() bool { return settled },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	expect := func(secret string, want int) {
		t.Helper()
		if err := db.Keys().CreateKey(t.Context(), audit.Operator(now), auditKey(t, secret)); err != nil {
			t.Fatal(err)
		}
		entries, err := db.Audit().Entries(t.Context(), "acme", audit.Query{Limit: 10})
		if err != nil || len(entries) != want {
			t.Errorf("%d entries, %v; want %d", len(entries), err, want)
		}
	}
	expect("ck_0000000001", 1)
	now = now.Add(audit.Kept)
	expect("ck_0000000002", 2)
	now = now.Add(time.Second)
	expect("ck_0000000003", 3)
	settled = true
	expect("ck_0000000004", 3)
}
