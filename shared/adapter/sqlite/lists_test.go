package sqlite_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cutroom/shared/domain/audit"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/usage"
	"cutroom/shared/testkit/await"
)

func TestLongListsDoNotDelayOtherAccounts(t *testing.T) {
	db := open(t)
	store := db.Usage()
	var records []usage.Record
	for i := range 2_000 {
		record := oneCall(fmt.Sprint(i))
		record.Account, record.Model = "hostile", record.ID
		records = append(records, record)
	}
	other := oneCall("other")
	if err := store.Add(t.Context(), append(records, other)); err != nil {
		t.Fatal(err)
	}
	key := credential.Key{
		Hash: credential.Hash{1}, ID: "key_1", Account: other.Account, CreatedAt: time.Now().UTC().Truncate(time.Millisecond),
	}
	if err := db.Keys().CreateKey(t.Context(), audit.Origin{By: "operator", At: time.Now()}, key); err != nil {
		t.Fatal(err)
	}

	const atOnce, rounds = 40, 10
	ctx, end := context.WithTimeout(t.Context(), await.Max)
	defer end()
	var (
		hostile sync.WaitGroup
		done    atomic.Int64
		begun   = make(chan struct{})
		once    sync.Once
	)
	for range atOnce {
		hostile.Go(func() {
			for ctx.Err() == nil {
				if _, err := store.Totals(ctx, "hostile", usageDay, usageDay, usage.All); err == nil && done.Add(1) > atOnce {
					once.Do(func() { close(begun) })
				}
			}
		})
	}
	await.Receive(t, "the lists", begun)
	for name, read := range map[string]func() error{
		"the lookup of a key": func() error {
			_, err := db.Keys().FindKey(ctx, key.Hash)
			return err
		},
		"a short list": func() error {
			_, err := store.Totals(ctx, other.Account, usageDay, usageDay, usage.All)
			return err
		},
	} {
		before := done.Load()
		for range rounds {
			if err := read(); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if lists := done.Load() - before; lists > rounds*atOnce/4 {
			t.Errorf("%s waited for %d lists of another account on average", name, lists/rounds)
		}
	}
	end()
	hostile.Wait()
}
