// Package records opens the records of one machine, whatever keeps them: the
// programs use the interfaces below and name no store. Each store has a file here
// that fills them in, and a row in stores.
package records

import (
	"context"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"

	"cutroom/shared/domain/audit"
	"cutroom/shared/domain/batch"
	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/file"
	"cutroom/shared/domain/idempotency"
	"cutroom/shared/domain/integrity"
	"cutroom/shared/domain/job"
	"cutroom/shared/domain/session"
	"cutroom/shared/domain/usage"
	"cutroom/shared/domain/webhook"
	"cutroom/shared/service/worker"
)

// stores are the kinds of databases by their names, the default first. find returns
// the database of a data folder and opens nothing.
var stores = []struct {
	kind string
	find func(folder string) Database
}{
	{"sqlite", findSQLite},
}

// Kinds returns what CUTROOM_RECORDS may be, the default first.
func Kinds() []string {
	var kinds []string
	for _, store := range stores {
		kinds = append(kinds, store.kind)
	}
	return kinds
}

// Find returns the database of a data folder (CUTROOM_DATA) that is of the kind
// that CUTROOM_RECORDS names; "" is the default. It opens nothing, and fails if there
// is no such kind.
func Find(kind, folder string) (Database, error) {
	for i, store := range stores {
		if kind == store.kind || kind == "" && i == 0 {
			return store.find(folder), nil
		}
	}
	return nil, fmt.Errorf("CUTROOM_RECORDS: %q is not %s", kind, strings.Join(Kinds(), " or "))
}

// Open finds and opens a database.
//
// Errors: those of Find and of Database.Open.
func Open(ctx context.Context, kind, folder string, options Options) (*Records, error) {
	database, err := Find(kind, folder)
	if err != nil {
		return nil, err
	}
	return database.Open(ctx, options)
}

// Database is where records are kept. It need not exist yet.
type Database interface {
	// Name is what messages call it, such as the path of its file.
	Name() string
	// Backup names what to restore from a backup, for messages.
	Backup() string
	// Present checks, without opening it, that the database exists.
	//
	// Errors: integrity.ErrNone, integrity.ErrLostMain; others of the store.
	Present() error
	// Inspect checks a database that is not open, and changes nothing: that it
	// exists, its mark, and, for at most the time given, that it is sound. With no
	// time it checks what it can without reading more of a larger database.
	//
	// Errors: those of Present; integrity.ErrDamaged.
	Inspect(ctx context.Context, within time.Duration) (integrity.Inspection, error)
	// Check checks that a database is sound, while it may be in use, and keeps nobody
	// waiting. It returns the names of parts that it could not check, as too much was
	// written meanwhile.
	//
	// Errors: integrity.ErrDamaged; that of the context.
	Check(ctx context.Context) (skipped []string, err error)
	// Open opens the database, which is made if there is none, and brings its
	// schema up to date.
	//
	// Errors: the database was written by a newer version of the program;
	// integrity.ErrLostMain; fault.StorageFull.
	Open(ctx context.Context, options Options) (*Records, error)
	// Snapshot writes the records as of one moment to a file, which must not exist. The
	// database may be in use.
	//
	// Errors: those of Inspect.
	Snapshot(ctx context.Context, into string) error
	// Place makes what Snapshot has written the database, where there is none yet. It
	// is there whole or not at all.
	Place(ctx context.Context, snapshot io.Reader) error
	// SetAside renames what is left of a lost database, so that the next Open makes a
	// new one, and returns the new names.
	SetAside(at time.Time) (kept []string, err error)
	// Salvage replaces a damaged database by a new one that holds what can still be
	// read, and keeps the damaged one under the name that it returns.
	Salvage(ctx context.Context, at time.Time) (kept string, tables []integrity.Salvaged, err error)
}

// Options are what an open database needs.
type Options struct {
	// Now is the clock that dates the end of a job which a delivery reports.
	Now func() time.Time
	// Settled reports whether the clock can be trusted to say what has expired; nil
	// means always.
	Settled func() bool
	// Reserve is room on the disk for what must be written when there is none left;
	// nil keeps none.
	Reserve Reserve
	// Committed is called with the number of durable transactions that the database
	// has had, after each one of this process and before its call returns. It must
	// not call the database. It may be nil.
	Committed func(writes int64)
}

// Reserve is room on the disk that is held until it is needed.
type Reserve interface {
	// Held reports whether the room is there.
	Held() bool
	// Release gives it up, and reports whether there was any to give up.
	Release() bool
	// Restore takes it again if there is room, and reports whether it is held.
	Restore() bool
}

// Records are the stores of an open database. They are valid until Close.
type Records struct {
	Whole
	Jobs            Jobs
	Queue           Queue
	Files           Files
	Keys            Keys
	IdempotencyKeys IdempotencyKeys
	Usage           usage.Store
	Audit           audit.Log
	Webhooks        Webhooks
	Estimates       job.EstimateStore
	// Budgets returns the records of budgets, whose leases are timed by the machine's
	// clock. Jobs take from them from then on.
	Budgets func(Machine) budget.Store
	Batches Batches
	// Sessions returns the records of realtime sessions, whose leases are timed by
	// the machine's clock.
	Sessions func(Machine) Sessions
}

// Whole is what concerns the database as a whole.
type Whole interface {
	// Mark returns the mark of the database as it is now.
	Mark(ctx context.Context) (integrity.Mark, error)
	// Expected returns the names of the blobs that must exist by the records: those
	// of files that requests see at now, and the results of jobs that ended after
	// the second time.
	Expected(ctx context.Context, now, endedAfter time.Time) iter.Seq2[string, error]
	// Probe writes to the database as acknowledged writes do, and fails if that
	// fails or if the open database is no longer the one under its name.
	Probe(ctx context.Context) error
	// ShiftTimes moves deadlines, leases and waits along with a clock that is set,
	// so that each keeps the time that it has left.
	ShiftTimes(ctx context.Context, by time.Duration) error
	// Close waits for the reads and writes that run, refuses new ones and closes
	// the database.
	Close() error
}

// Jobs are the records of jobs.
type Jobs interface {
	job.Store
	job.Runs
	job.Retention
	job.Watcher
	job.Lines
	// Open counts the jobs that have not ended, by lane and status.
	Open(ctx context.Context) ([]job.OpenJobs, error)
}

// Queue is the queue of jobs.
type Queue interface {
	worker.Queue
	// RecoverLeases makes every queued job visible at once. It is for the start of
	// the one process that receives: whoever holds a lease then is dead.
	RecoverLeases(ctx context.Context) error
}

// Files are the records of files.
type Files interface {
	file.Store
	file.Retention
	// StoredBytes returns what the files of all accounts hold, in bytes.
	StoredBytes(ctx context.Context) (int64, error)
}

// Keys are the records of keys and client tokens.
type Keys interface {
	credential.Store
	credential.TokenStore
	credential.TokenRetention
}

// IdempotencyKeys are the records of idempotency keys.
type IdempotencyKeys interface {
	idempotency.Store
	// Abandon ends every claim that is not settled. It is for the start of the one
	// process that makes claims.
	Abandon(ctx context.Context, now time.Time) error
}

// Batches are the records of batches.
type Batches interface {
	batch.Store
	batch.Progress
	batch.Retention
}

// Webhooks are the records of webhooks.
type Webhooks interface {
	webhook.Store
	webhook.Queue
}

// Sessions are the records of realtime sessions.
type Sessions interface {
	session.Store
	// Open counts the open sessions of all accounts.
	Open(ctx context.Context) (int, error)
	// Waiting counts the clients of all accounts that wait for one.
	Waiting(ctx context.Context) (int, error)
}

// Machine is a clock that all processes of the machine share and that nobody sets
// (see platform/boottime).
type Machine interface {
	// Now is the time since the machine's start.
	Now() time.Duration
	// Boot names that start.
	Boot() string
}
