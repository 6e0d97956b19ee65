package sqlite

import (
	"context"
	"crypto/rand"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"cutroom/shared/domain/audit"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/fault"
	"cutroom/shared/testkit/patience"
)

// newTokens creates a key in the database and returns tokens of it that are not
// stored yet.
func newTokens(t *testing.T, db *DB, n int) []credential.Token {
	t.Helper()
	key, err := credential.NewKey("ck_development", "acme", "default", "", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Keys().CreateKey(t.Context(), audit.Operator(key.CreatedAt), key); err != nil {
		t.Fatal(err)
	}
	tokens := make([]credential.Token, n)
	for i := range tokens {
		if _, tokens[i], err = credential.NewToken(rand.Reader, key, credential.TokenRequest{Lifetime: time.Minute},
			time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	return tokens
}

// createWhileBusy creates all tokens while another write runs, lets that one end
// once all are waiting, and returns the results.
func createWhileBusy(t *testing.T, db *DB, ctx context.Context, tokens []credential.Token) []error {
	t.Helper()
	busy, err := db.writer.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	errs := make([]error, len(tokens))
	var all sync.WaitGroup
	for i, token := range tokens {
		all.Go(func() { errs[i] = db.Keys().CreateToken(ctx, token) })
	}
	waiting := func() int {
		db.tokens.mu.Lock()
		defer db.tokens.mu.Unlock()
		if db.tokens.next == nil {
			return 0
		}
		return len(db.tokens.next.items)
	}
	patience.Becomes(t, "tokens that wait for one transaction", len(tokens), waiting)
	if err := busy.Close(); err != nil {
		t.Fatal(err)
	}
	all.Wait()
	return errs
}

func TestTokensThatWaitTogetherShareATransaction(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	db := openFile(t, path)
	tokens := newTokens(t, db, 30)
	for i, err := range createWhileBusy(t, db, t.Context(), tokens) {
		if err != nil {
			t.Errorf("token %d: %v", i, err)
		}
	}
	// Another process sees what was acknowledged, so it survives this one.
	other := openFile(t, path)
	for i, token := range tokens {
		if _, err := other.Keys().FindToken(t.Context(), token.Hash); err != nil {
			t.Errorf("token %d: %v", i, err)
		}
	}
}

func TestACallerThatLeavesTakesNobodysToken(t *testing.T) {
	db := openFile(t, filepath.Join(t.TempDir(), "a.db"))
	tokens := newTokens(t, db, 10)
	gone, leave := context.WithCancel(t.Context())
	leave()
	for i, err := range createWhileBusy(t, db, gone, tokens) {
		if err != nil {
			t.Errorf("token %d: %v", i, err)
		}
	}
}

func TestTokensOfAFailedTransactionAllFail(t *testing.T) {
	db := openFile(t, filepath.Join(t.TempDir(), "a.db"))
	tokens := newTokens(t, db, 500)
	limit := func(pages string) {
		if _, err := db.writer.ExecContext(t.Context(), "pragma max_page_count = "+pages); err != nil {
			t.Fatal(err)
		}
	}
	limit("1")
	for i, err := range createWhileBusy(t, db, t.Context(), tokens) {
		if !fault.Is(err, fault.StorageFull) {
			t.Fatalf("token %d: error %v, want one of a full store", i, err)
		}
	}
	for i, token := range tokens {
		if _, err := db.Keys().FindToken(t.Context(), token.Hash); !fault.Is(err, fault.NotFound) {
			t.Fatalf("token %d of the failed transaction: %v, want not found", i, err)
		}
	}
	limit("100000")
	if err := db.Keys().CreateToken(t.Context(), tokens[0]); err != nil {
		t.Errorf("once there is room: %v", err)
	}
}
