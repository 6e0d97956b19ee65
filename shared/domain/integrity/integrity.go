// Package integrity compares the marks of records and blobs. At startup, the server uses it to
// detect a lost, damaged or outdated copy before it deletes anything.
package integrity

import "errors"

var (
	ErrNone = errors.New("the database does not exist")
	// ErrLostMain protects the write-ahead log, because opening the database would delete the log, and with it the
	// latest writes.
	ErrLostMain = errors.New("the database file is missing, but its write-ahead log exists")
	// ErrDamaged also means that the records are inconsistent or unreadable.
	ErrDamaged = errors.New("the database is damaged")
)

// Mark identifies a database and its age. The blob store keeps the mark of its database.
type Mark struct {
	Database string
	// Writes counts durable transactions that changed data.
	Writes int64
}

type Inspection struct {
	// Mark is zero if the records have no mark.
	Mark  Mark
	Bytes int64
	// Complete is true if there was time to check all pages.
	Complete bool
}
