// Package filled writes many records directly into a database, for measurements and the soak test.
// Writing them through the store would be slow, because it syncs each record.
package filled

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"cutroom/shared/adapter/sqlite"
	"cutroom/shared/domain/audit"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/file"
)

// chunk is the number of records per transaction.
const chunk = 250_000

// Key creates a permanent key for an account in a database that no other process has open. It
// creates the database if needed.
func Key(ctx context.Context, path, secret, account string, now time.Time) error {
	store, err := sqlite.Open(ctx, path, sqlite.Options{Now: time.Now})
	if err != nil {
		return err
	}
	defer store.Close()
	key, err := credential.NewKey(secret, account, credential.DevTier, "many files", now)
	if err != nil {
		return err
	}
	return store.Keys().CreateKey(ctx, audit.Operator(key.CreatedAt), key)
}

// Files describes the records of an account's stored files. Their blobs do not exist. Nine in ten
// expire a day after Now; the others never expire.
type Files struct {
	Account string
	// Records From+1 through Count are written.
	From, Count int
	Name        string
	Now         time.Time
}

// ID returns the id of one of an account's files. Files are numbered from 1.
func ID(account string, number int) string { return fmt.Sprintf("file_%s%024d", account, number) }

type Records interface {
	span() (from, count int)
	// write writes the records with the numbers from+1 through `to`.
	write(ctx context.Context, db *sql.DB, from, to int) error
}

// Write writes the records into the database at path. No other process may have it open. It creates the database if
// needed.
func Write(ctx context.Context, path string, all ...Records) error {
	store, err := sqlite.Open(ctx, path, sqlite.Options{Now: time.Now})
	if err != nil {
		return err
	}
	if err := store.Close(); err != nil {
		return err
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	// Use no journal, because an interrupted database is simply built again.
	settings := "pragma cache_size = -262144; pragma journal_mode = off; pragma synchronous = off"
	if _, err := db.ExecContext(ctx, settings); err != nil {
		return err
	}
	for _, records := range all {
		from, count := records.span()
		for ; from < count; from += chunk {
			if err := records.write(ctx, db, from, min(from+chunk, count)); err != nil {
				return err
			}
		}
	}
	_, err = db.ExecContext(ctx, "pragma journal_mode = wal")
	return err
}

func (f Files) span() (from, count int) { return f.From, f.Count }

func (f Files) write(ctx context.Context, db *sql.DB, from, to int) error {
	name := f.Name
	if name == "" {
		name = "holiday at the sea.mp4"
	}
	_, err := db.ExecContext(ctx, `with recursive number (n) as
			(select ?5 + 1 union all select n + 1 from number where n < ?2)
		insert into file (id, account, key, filename, mime, size, md5, blob, state, created_at, expires_at, lifetime)
		select 'file_' || ?1 || printf('%024d', n), ?1, 'key_0123456789ab', ?6, 'video/mp4', 1000000,
			lower(hex(randomblob(16))), 'files/' || ?1 || n, 'stored', ?3, iif(n % 10 = 0, null, ?4), 86400000
		from number`, f.Account, to, f.Now.UnixMilli(), f.Now.Add(file.DefaultLifetime).UnixMilli(), from, name)
	return err
}

var LongName = strings.Repeat("holiday at the sea ", 13) + ".mp4"
