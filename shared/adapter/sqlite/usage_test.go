package sqlite_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"cutroom/shared/adapter/sqlite"
	"cutroom/shared/domain/usage"
	"cutroom/shared/domain/usage/usagetest"
)

func TestUsage(t *testing.T) {
	usagetest.Run(t, func(t *testing.T) usage.Store { return open(t).Usage() })
}

const usageDay usage.Day = "2026-02-03"

// oneCall returns the record of a call with one token.
func oneCall(id string) usage.Record {
	return usage.Record{
		ID: id, Account: "acme", Key: "key_1", Model: "a", Day: usageDay,
		Counts: usage.Counts{Requests: 1, CompletionTokens: 1},
	}
}

// calls returns how many calls the store has counted.
func calls(t *testing.T, store usage.Store) int64 {
	t.Helper()
	totals, err := store.Totals(t.Context(), "acme", usageDay, usageDay)
	if err != nil {
		t.Fatal(err)
	}
	if len(totals) == 0 {
		return 0
	}
	if len(totals) > 1 || totals[0].CompletionTokens != totals[0].Requests {
		t.Fatalf("the totals are torn: %+v", totals)
	}
	return totals[0].Requests
}

// The ids of records are remembered for at least ten minutes, but not for ever.
func TestUsageForgetsRecordsInTheEnd(t *testing.T) {
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
		t.Errorf("%d records are known, want the last %d", kept, adds)
	}
	if got := calls(t, db.Usage()); got != 1001+adds {
		t.Errorf("%d calls are counted, want %d", got, 1001+adds)
	}
}

// usageRound is how many calls the child of TestUsageSurvivesAKill counts before it
// is killed.
const usageRound = 2000

// countCalls counts calls through a writer, prints each, and never stops by itself.
func countCalls(ctx context.Context, db *sqlite.DB) error {
	writer := usage.NewWriter(usage.WriterConfig{Store: db.Usage(), NewID: rand.Text, Logger: slog.Default()})
	go writer.Run(ctx)
	for range usageRound {
		if err := writer.Record(ctx, oneCall("")); err != nil {
			return err
		}
		fmt.Println("counted")
	}
	select {}
}

// What was counted before the last write survives a kill, each call once; and
// writes happen by themselves.
func TestUsageSurvivesAKill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cutroom.db")
	db := openAt(t, path)
	said := int64(0)
	for round := range 4 {
		child, out := startChild(t, "count calls", path)
		before := calls(t, db.Usage())
		if round%2 == 0 {
			// Kill it while it counts.
			for range usageRound / 2 {
				if !out.Scan() {
					t.Fatalf("the child ended: %v", out.Err())
				}
				said++
			}
		} else {
			for range usageRound {
				if !out.Scan() {
					t.Fatalf("the child ended: %v", out.Err())
				}
				said++
			}
			for written := before; written < before+usageRound; written = calls(t, db.Usage()) {
				if t.Context().Err() != nil {
					t.Fatal("the writes never came")
				}
				time.Sleep(time.Millisecond)
			}
		}
		seen := calls(t, db.Usage())
		if err := child.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for out.Scan() {
			said++
		}
		child.Wait()
		after := calls(t, db.Usage())
		// The last call may have been counted but not printed yet.
		if after < seen || after > said+1 {
			t.Fatalf("round %d: %d calls are counted, %d were before the kill and %d were said", round, after, seen, said)
		}
		if round%2 == 1 && after != before+usageRound {
			t.Fatalf("round %d: %d calls are counted, want %d", round, after-before, usageRound)
		}
		said = after
	}
}
