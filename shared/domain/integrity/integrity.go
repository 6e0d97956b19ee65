// Package integrity holds what records and blobs tell of themselves, so that a
// start notices when one of them is lost, damaged or an older copy, before
// anything is deleted because of it.
package integrity

import "errors"

var (
	// ErrNone means that there are no records: no database, or an empty one.
	ErrNone = errors.New("there is no database")
	// ErrLostMain means that there is no database although its write-ahead log,
	// which holds the latest writes, is there. Opening the database would delete
	// the log.
	ErrLostMain = errors.New("the database is gone, though its write-ahead log is there")
	// ErrDamaged means that the records cannot be read, or contradict themselves.
	ErrDamaged = errors.New("the database is damaged")
)

// Mark identifies a database, and distinguishes an earlier copy of it from a
// later one. Blobs keep the mark of the database that they belong to.
type Mark struct {
	// Database is the id that the database got when it was made.
	Database string
	// Writes counts its durable transactions that changed anything.
	Writes int64
}

// Inspection is what a look at records found that are not open.
type Inspection struct {
	// Mark is zero if the records were last written by a version of the program
	// that kept none.
	Mark Mark
	// Bytes is the size of the records.
	Bytes int64
	// Whole reports whether everything was checked in the time given.
	Whole bool
}
