package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"cutroom/shared/domain/file"
)

// Files is a file.Store. An expired file counts toward its account's storage until it is marked as
// ended, by a sweep or by an upload that needs the space.
type Files struct{ db *DB }

var (
	_ file.Store     = (*Files)(nil)
	_ file.Retention = (*Files)(nil)
)

func (db *DB) Files() *Files { return &Files{db} }

const (
	fileColumns = `file.id, file.account, key, filename, mime, size, md5, blob, state,
		created_at, file.expires_at, lifetime, upload_until, promise_bytes, promise_limit, purpose`

	// current is the condition for files that requests can see. ?1 is the time.
	current = "state = 'stored' and (expires_at is null or expires_at > ?1)"

	fileByID  = "select " + fileColumns + " from file where id = ?2 and account = ?3 and " + current
	fileByMD5 = "select " + fileColumns + ` from file indexed by file_stored_by_md5
		where account = ?2 and md5 = ?3 and ` + current + " order by id desc limit 1"
	pendingByID = "select " + fileColumns + " from file where id = ? and upload_until is not null and state <> 'ended'"
	deleteFile  = "delete from file where id = ?2 and account = ?3 and " + current + " returning " + fileColumns
)

func (s *Files) Create(ctx context.Context, f file.File, limit int64) error {
	state := "stored"
	if f.Pending {
		state = "promised"
	}
	if err := s.db.admitFile(ctx, f); err != nil {
		return err
	}
	return s.db.write(ctx, "create a file", func(ctx context.Context, tx *transaction) error {
		if err := checkPendingLimit(ctx, tx, f); err != nil {
			return err
		}
		if _, err := release(ctx, tx, f.Reserved); err != nil {
			return err
		}
		if _, err := s.makeSpace(ctx, tx, f.Account, f.Counts(), limit, f.CreatedAt); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `insert into file
			(id, account, key, filename, mime, size, md5, blob, state,
				created_at, expires_at, lifetime, upload_until, promise_bytes, promise_limit, purpose)
			values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			f.ID, f.Account, f.Key, f.Filename, f.MIME, f.Size, f.MD5, f.Blob, state,
			millis(f.CreatedAt), optionalMillis(f.ExpiresAt), f.Lifetime.Milliseconds(), optionalMillis(f.UploadUntil),
			f.Upload.Bytes, f.Upload.Limit, f.Purpose)
		return err
	})
}

func (s *Files) Get(ctx context.Context, account, id string, now time.Time) (file.File, error) {
	f, err := scanFile(s.db.lookup.QueryRowContext(ctx, fileByID, millis(now), id, account))
	return f, storeError("get a file", err)
}

func (s *Files) FindMD5(ctx context.Context, account, md5 string, now time.Time) (file.File, error) {
	f, err := scanFile(s.db.lookup.QueryRowContext(ctx, fileByMD5, millis(now), account, md5))
	return f, storeError("find a file by its MD5", err)
}

func (s *Files) Delete(ctx context.Context, account, id string, now time.Time) (file.File, error) {
	var f file.File
	err := s.db.writeAnyway(ctx, "delete a file", func(ctx context.Context, tx *transaction) (err error) {
		f, err = scanFile(tx.QueryRowContext(ctx, deleteFile, millis(now), id, account))
		return err
	})
	return f, err
}

func (s *Files) PendingUpload(ctx context.Context, id string) (file.File, error) {
	f, err := scanFile(s.db.lookup.QueryRowContext(ctx, pendingByID, id))
	return f, storeError("get a pending file", err)
}

func (s *Files) Finalize(ctx context.Context, f file.File, now time.Time) error {
	return s.db.write(ctx, "finalize a file", func(ctx context.Context, tx *transaction) error {
		promise, err := scanFile(tx.QueryRowContext(ctx, pendingByID, f.ID))
		if err != nil {
			return err
		}
		held, err := release(ctx, tx, f.Reserved)
		if err != nil || !promise.Pending {
			return err // another upload of the same file finished first
		}
		need := promise.Size - promise.Counts() - held
		if _, err := s.makeSpace(ctx, tx, promise.Account, need, promise.Upload.Limit, now); err != nil {
			return err
		}
		// makeSpace may have ended this file.
		changed, err := tx.ExecContext(ctx,
			"update file set state = 'stored', mime = ?, expires_at = ? where id = ? and state = 'promised'", f.MIME,
			optionalMillis(f.ExpiresAt), f.ID)
		return oneOf(changed, err)
	})
}

func scanFile(r row) (file.File, error) {
	var (
		f                      file.File
		state                  string
		createdAt, lifetime    int64
		expiresAt, uploadUntil sql.NullInt64
	)
	err := r.Scan(&f.ID, &f.Account, &f.Key, &f.Filename, &f.MIME, &f.Size, &f.MD5, &f.Blob, &state,
		&createdAt, &expiresAt, &lifetime, &uploadUntil, &f.Upload.Bytes, &f.Upload.Limit, &f.Purpose)
	if errors.Is(err, sql.ErrNoRows) {
		return file.File{}, file.ErrNotFound
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

func optionalMillis(t time.Time) sql.NullInt64 {
	return sql.NullInt64{Int64: millis(t), Valid: !t.IsZero()}
}
