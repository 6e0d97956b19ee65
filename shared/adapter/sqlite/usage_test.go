package sqlite_test

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"cutroom/shared/adapter/sqlite"
	"cutroom/shared/domain/usage"
	"cutroom/shared/domain/usage/usagetest"
)

func TestUsageConforms(t *testing.T) {
	usagetest.Run(t, func(t *testing.T) usage.Store { return open(t).Usage() })
}

const usageDay usage.Day = "2026-02-03"

func oneCall(id string) usage.Record {
	return usage.Record{
		ID: id, Account: "acme", Key: "key_1", Model: "a", Day: usageDay,
		Counts: usage.Counts{Requests: 1, CompletionTokens: 1},
	}
}

func calls(t *testing.T, store usage.Store) int64 {
	t.Helper()
	totals, err := store.Totals(t.Context(), "acme", usageDay, usageDay, usage.All)
	if err != nil {
		t.Fatal(err)
	}
	if len(totals) == 0 {
		return 0
	}
	if len(totals) > 1 || totals[0].CompletionTokens != totals[0].Requests {
		t.Fatalf("the totals are inconsistent: %+v", totals)
	}
	return totals[0].Requests
}

// Ids are remembered for at least ten minutes.
func TestOldUsageIsDeleted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cutroom.db")
	now := time.Date(2026, 2, 3, 12, 0, 0, 0, time.UTC)
	db, err := sqlite.Open(t.Context(), path, sqlite.Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	add := func(records ...usage.Record) {
		t.Helper()
		if err := db.Usage().Add(t.Context(), records); err != nil {
			t.Fatal(err)
		}
	}
	var burst []usage.Record
	for i := range 1000 {
		burst = append(burst, oneCall(fmt.Sprint("burst-", i)))
	}
	add(burst...)
	now = now.Add(10 * time.Minute)
	add(oneCall("later"))
	add(burst...)
	if got := calls(t, db.Usage()); got != 1001 {
		t.Fatalf("%d calls were counted, want 1001", got)
	}
	now = now.Add(time.Hour)
	const adds = 12
	for i := range adds {
		add(oneCall(fmt.Sprint("much-later-", i)))
	}
	raw, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	var kept int
	if err := raw.QueryRow("select count(*) from usage_record").Scan(&kept); err != nil {
		t.Fatal(err)
	}
	if kept != adds {
		t.Errorf("%d records are known, want the latest %d", kept, adds)
	}
	if got := calls(t, db.Usage()); got != 1001+adds {
		t.Errorf("%d calls are counted, want %d", got, 1001+adds)
	}
}
