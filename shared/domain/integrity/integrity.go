// Package integrity compares the marks of records and blobs. The server uses it at startup to
// detect a lost, damaged or older copy before it deletes anything.
package integrity

import "errors"

var (
	ErrNone = errors.New("the database does not exist")
	// ErrLostMain prevents the deletion of the write-ahead log: opening the database would delete it,
	// with the latest writes.
	ErrLostMain = errors.New("the database file is missing, but its write-ahead log exists")
	// ErrDamaged includes records that are inconsistent or cannot be read.
	ErrDamaged = errors.New("the database is damaged")
)

// Mark identifies a database and its age. Blobs keep the mark of their database.
type Mark struct {
	Database string
	// Writes counts durable transactions that changed data.
	Writes int64
}

type Inspection struct {
	// Mark is zero for records without a mark.
	Mark  Mark
	Bytes int64
	// Complete is true if all pages were checked in time.
	Complete bool
}
