// Package integrity compares the marks of records and blobs. The server uses it at startup to
// detect a lost, damaged or older copy before it deletes anything.
package integrity

import "errors"

var (
	ErrNone = errors.New("the database does not exist")
	// ErrLostMain means that the database is missing although its write-ahead log, with the
	// latest writes, exists. Opening the database would delete the log.
	ErrLostMain = errors.New("the database file is missing, but its write-ahead log exists")
	// ErrDamaged means that the records cannot be read, or are inconsistent.
	ErrDamaged = errors.New("the database is damaged")
)

// Mark identifies a database and its age, so that an earlier copy differs from a later one. Blobs
// keep the mark of their database.
type Mark struct {
	Database string
	// Writes counts its durable transactions that changed data.
	Writes int64
}

// Inspection is the result of inspecting a closed database.
type Inspection struct {
	// Mark is zero for records without a mark.
	Mark  Mark
	Bytes int64
	// Complete reports whether all pages were checked in time.
	Complete bool
}
