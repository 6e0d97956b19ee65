package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/file"
)

// Files is a file.Store and a file.Retention.
//
// A file that has expired counts towards its account's storage until it is
// marked as ended. A sweep marks it, and so does an upload that would not fit
// otherwise: expired files never keep an account from uploading.
type Files struct{ db *DB }

var (
	_ file.Store     = (*Files)(nil)
	_ file.Retention = (*Files)(nil)
)

// Files gives the records of stored files.
func (db *DB) Files() *Files { return &Files{db} }

const (
	fileColumns = `file.id, file.account, key, filename, mime, size, md5, blob, state,
		created_at, file.expires_at, lifetime, upload_until, promise_bytes, promise_limit`

	// current is the condition of a file that a request may see, given the time
	// as ?1.
	current = "state = 'stored' and (expires_at is null or expires_at > ?1)"

	fileByID  = "select " + fileColumns + " from file where id = ?2 and account = ?3 and " + current
	fileByMD5 = "select " + fileColumns + ` from file indexed by file_stored_by_md5
		where account = ?2 and md5 = ?3 and ` + current + " order by id desc limit 1"
	promiseByID = "select " + fileColumns + " from file where id = ? and upload_until is not null and state <> 'ended'"
	deleteFile  = "delete from file where id = ?2 and account = ?3 and " + current + " returning " + fileColumns
)

// Create records a file whose bytes are stored, or promised.
//
// Errors: fault.Limited when the account would then store more than limit bytes
// (0 is no limit), or have more than Promise.Most; fault.StorageFull.
func (s *Files) Create(ctx context.Context, f file.File, limit int64) error {
	state := "stored"
	if f.Pending {
		state = "promised"
	}
	return s.db.write(ctx, "create a file", func(ctx context.Context, tx *sql.Tx) error {
		if err := mayPromise(ctx, tx, f); err != nil {
			return err
		}
		if _, err := release(ctx, tx, f.Room); err != nil {
			return err
		}
		if _, err := s.makeRoom(ctx, tx, f.Account, f.Counts(), limit, f.CreatedAt); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `insert into file
			(id, account, key, filename, mime, size, md5, blob, state,
				created_at, expires_at, lifetime, upload_until, promise_bytes, promise_limit)
			values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			f.ID, f.Account, f.Key, f.Filename, f.MIME, f.Size, f.MD5, f.Blob, state,
			millis(f.CreatedAt), optionalMillis(f.ExpiresAt), f.Lifetime.Milliseconds(), optionalMillis(f.UploadUntil), f.Upload.Bytes, f.Upload.Limit)
		return err
	})
}

// Get gives an account's file.
//
// Errors: fault.NotFound.
func (s *Files) Get(ctx context.Context, account, id string, now time.Time) (file.File, error) {
	f, err := scanFile(s.db.lookup.QueryRowContext(ctx, fileByID, millis(now), id, account))
	return f, storeError("get a file", err)
}

// FindMD5 gives an account's newest file with the MD5 in lower-case hex.
//
// Errors: fault.NotFound.
func (s *Files) FindMD5(ctx context.Context, account, md5 string, now time.Time) (file.File, error) {
	f, err := scanFile(s.db.lookup.QueryRowContext(ctx, fileByMD5, millis(now), account, md5))
	return f, storeError("find a file by its MD5", err)
}

// Delete removes the record of an account's file and gives what it was.
//
// Errors: fault.NotFound.
func (s *Files) Delete(ctx context.Context, account, id string, now time.Time) (file.File, error) {
	var f file.File
	err := s.db.writeAnyway(ctx, "delete a file", func(ctx context.Context, tx *sql.Tx) (err error) {
		f, err = scanFile(tx.QueryRowContext(ctx, deleteFile, millis(now), id, account))
		return err
	})
	return f, err
}

// PendingUpload gives a file that is promised, or was until Finalize made it a file.
//
// Errors: fault.NotFound.
func (s *Files) PendingUpload(ctx context.Context, id string) (file.File, error) {
	f, err := scanFile(s.db.lookup.QueryRowContext(ctx, promiseByID, id))
	return f, storeError("get a promised file", err)
}

// Finalize makes a promised file known, with the MIME type and the expiry of f.
//
// Errors: fault.NotFound when there is no such promise, or a sweep has taken it
// as not kept; fault.Limited when the account would then store more than the
// promise's limit; fault.StorageFull.
func (s *Files) Finalize(ctx context.Context, f file.File, now time.Time) error {
	return s.db.write(ctx, "publish a file", func(ctx context.Context, tx *sql.Tx) error {
		promise, err := scanFile(tx.QueryRowContext(ctx, promiseByID, f.ID))
		if err != nil || !promise.Pending {
			return err
		}
		held, err := release(ctx, tx, f.Room)
		if err != nil {
			return err
		}
		need := promise.Size - promise.Counts() - held
		if _, err := s.makeRoom(ctx, tx, promise.Account, need, promise.Upload.Limit, now); err != nil {
			return err
		}
		// What made room may have ended it.
		changed, err := tx.ExecContext(ctx,
			"update file set state = 'stored', mime = ?, expires_at = ? where id = ? and state = 'promised'", f.MIME, optionalMillis(f.ExpiresAt), f.ID)
		return oneOf(changed, err)
	})
}

// scanFile reads a row of fileColumns.
//
// Errors: fault.NotFound when there is no row.
func scanFile(r row) (file.File, error) {
	var (
		f                      file.File
		state                  string
		createdAt, lifetime    int64
		expiresAt, uploadUntil sql.NullInt64
	)
	err := r.Scan(&f.ID, &f.Account, &f.Key, &f.Filename, &f.MIME, &f.Size, &f.MD5, &f.Blob, &state,
		&createdAt, &expiresAt, &lifetime, &uploadUntil, &f.Upload.Bytes, &f.Upload.Limit)
	if errors.Is(err, sql.ErrNoRows) {
		return file.File{}, fault.New(fault.NotFound, "File not found.")
	}
	if err != nil {
		return file.File{}, err
	}
	f.CreatedAt = time.UnixMilli(createdAt).UTC()
	f.ExpiresAt, f.UploadUntil = timeOf(expiresAt), timeOf(uploadUntil)
	f.Lifetime = time.Duration(lifetime) * time.Millisecond
	f.Pending = state == "promised"
	return f, nil
}

// optionalMillis gives a time as it is stored, and the zero time as null.
func optionalMillis(t time.Time) sql.NullInt64 {
	return sql.NullInt64{Int64: millis(t), Valid: !t.IsZero()}
}
