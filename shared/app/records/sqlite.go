package records

import (
	"context"
	"io"
	"path/filepath"
	"time"

	"cutroom/shared/adapter/sqlite"
	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/integrity"
)

// sqliteFile is a database in one SQLite file.
type sqliteFile struct{ path string }

func findSQLite(folder string) Database { return sqliteFile{filepath.Join(folder, "cutroom.db")} }

func (f sqliteFile) Name() string { return f.path }

func (f sqliteFile) Backup() string {
	name := filepath.Base(f.path)
	return name + " with its " + name + "-wal"
}

func (f sqliteFile) Present() error { return sqlite.Present(f.path) }

func (f sqliteFile) Inspect(ctx context.Context, within time.Duration) (integrity.Inspection, error) {
	return sqlite.Inspect(ctx, f.path, within)
}

func (f sqliteFile) Check(ctx context.Context) ([]string, error) { return sqlite.Check(ctx, f.path) }

func (f sqliteFile) Open(ctx context.Context, options Options) (*Records, error) {
	db, err := sqlite.Open(ctx, f.path, sqlite.Options{
		Now: options.Now, Settled: options.Settled, Reserve: options.Reserve, Committed: options.Committed,
	})
	if err != nil {
		return nil, err
	}
	jobs := db.Jobs()
	return &Records{
		Whole: db, Jobs: jobs, Queue: db.Queue(), Files: db.Files(), Keys: db.Keys(),
		IdempotencyKeys: db.IdempotencyKeys(), Usage: db.Usage(), Webhooks: db.Webhooks(),
		Estimates: db.Estimates(), Batches: db.Batches(), Audit: db.Audit(),
		Budgets: func(machine Machine) budget.Store {
			budgets := db.Budgets(machine)
			jobs.HoldIn(budgets)
			return budgets
		},
		Sessions: func(machine Machine) Sessions { return db.Sessions(machine) },
	}, nil
}

func (f sqliteFile) Snapshot(ctx context.Context, into string) error {
	return sqlite.Snapshot(ctx, f.path, into)
}

func (f sqliteFile) Place(ctx context.Context, snapshot io.Reader) error {
	return sqlite.Place(ctx, f.path, snapshot)
}

func (f sqliteFile) SetAside(at time.Time) ([]string, error) { return sqlite.SetAside(f.path, at) }

func (f sqliteFile) Salvage(ctx context.Context, at time.Time) (string, []integrity.Salvaged, error) {
	return sqlite.Replace(ctx, f.path, at)
}
