package dynamo

import (
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"

	"cutroom/shared/domain/file"
)

// Account names contain no slash, so partition names do not collide.
const (
	// filePrefix starts the id of a file's own item. These items are the account's list of files.
	filePrefix = "file_"
	// The id of a stored file's entry consists of md5Prefix, an MD5, a slash and the file's id.
	// While the entry exists, the file counts toward its account's storage. The entry has no TTL,
	// because the transaction that removes it also subtracts the file's bytes from the total.
	md5Prefix = "md5/"
	// The id of a pending file's entry consists of promisePrefix and the file's id. It is also the
	// pending file's partition, so the file can be read without knowing its account.
	promisePrefix     = "promise/"
	promiseItem       = "promise"
	reservationPrefix = "room/"
	// storageItem counts an account's stored bytes and pending files.
	storageItem = "storage"

	filesByEnd = "files-by-end"
)

// fileItem is a stored file, a pending file, or an entry. All have the same attributes, so one read
// finds a file by its MD5. Times are in milliseconds.
type fileItem struct {
	Partition string `dynamodbav:"account"`
	ID        string `dynamodbav:"id"`
	// EndsAt is a string that sorts by time. Only entries have it.
	EndsAt string `dynamodbav:"ends_at,omitempty"`
	TTL    int64  `dynamodbav:"ttl,omitempty"` // in seconds; entries do not have it

	File        string `dynamodbav:"file_id"`
	Account     string `dynamodbav:"file_account"`
	Key         string `dynamodbav:"key_id"`
	Filename    string `dynamodbav:"filename"`
	MIME        string `dynamodbav:"mime_type"`
	Purpose     string `dynamodbav:"purpose,omitempty"`
	Size        int64  `dynamodbav:"size_bytes"`
	MD5         string `dynamodbav:"md5"`
	Blob        string `dynamodbav:"blob_name"`
	CreatedAt   int64  `dynamodbav:"created_at"`
	ExpiresAt   int64  `dynamodbav:"expires_at,omitempty"`
	Lifetime    int64  `dynamodbav:"lifetime,omitempty"`
	UploadUntil int64  `dynamodbav:"upload_until,omitempty"`
	Promised    bool   `dynamodbav:"promised,omitempty"`
	// A pending file of version 0.1.0 has neither PromiseBytes nor PromiseLimit.
	PromiseBytes int64 `dynamodbav:"promise_bytes,omitempty"`
	PromiseLimit int64 `dynamodbav:"promise_limit,omitempty"`
}

func fields(f file.File) fileItem {
	return fileItem{
		File: f.ID, Account: f.Account, Key: f.Key, Filename: f.Filename, MIME: f.MIME, Size: f.Size, MD5: f.MD5,
		Blob: f.Blob, Purpose: f.Purpose,
		CreatedAt: f.CreatedAt.UnixMilli(), ExpiresAt: optionalMillis(f.ExpiresAt), Lifetime: f.Lifetime.Milliseconds(),
		UploadUntil: optionalMillis(f.UploadUntil), Promised: f.Pending,
		PromiseBytes: f.Upload.Bytes, PromiseLimit: f.Upload.Limit,
	}
}

func ownItem(f file.File) fileItem {
	i := fields(f)
	i.Partition, i.ID, i.TTL = f.Account, f.ID, optionalSeconds(f.ExpiresAt)
	return i
}

// promiseGrace is how long a pending file is kept after UploadUntil, because a request that started
// in time may still be sending the bytes.
const promiseGrace = time.Hour

func promiseOf(f file.File) fileItem {
	i := fields(f)
	i.Partition, i.ID, i.TTL = promisePrefix+f.ID, promiseItem, optionalSeconds(f.ExpiresAt)
	if f.Pending {
		i.TTL = optionalSeconds(f.UploadUntil.Add(promiseGrace))
	}
	return i
}

func entryOf(f file.File) fileItem {
	i := fields(f)
	i.Partition, i.ID = f.Account, entryID(f)
	switch {
	case f.Pending:
		i.EndsAt = endText(f.UploadUntil)
	case !f.ExpiresAt.IsZero():
		i.EndsAt = endText(f.ExpiresAt)
	}
	return i
}

func entryID(f file.File) string {
	if f.Pending {
		return promisePrefix + f.ID
	}
	return md5Prefix + f.MD5 + "/" + f.ID
}

func endText(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

func (i fileItem) file() file.File {
	return file.File{
		ID: i.File, Account: i.Account, Key: i.Key, Filename: i.Filename, MIME: i.MIME, Purpose: i.Purpose, Size: i.Size, MD5: i.MD5,
		Blob:      i.Blob,
		CreatedAt: time.UnixMilli(i.CreatedAt).UTC(), ExpiresAt: optionalTime(i.ExpiresAt),
		Lifetime: time.Duration(i.Lifetime) * time.Millisecond, UploadUntil: optionalTime(i.UploadUntil), Pending: i.Promised,
		Upload: file.PendingUpload{Bytes: i.PromiseBytes, Limit: i.PromiseLimit},
	}
}

func readFile(i item) (file.File, error) {
	var read fileItem
	if err := attributevalue.UnmarshalMap(i, &read); err != nil {
		return file.File{}, fmt.Errorf("dynamo: read a file: %w", err)
	}
	return read.file(), nil
}

// RemovedFile returns the file that ended when an item was removed, from the item's old image in
// the table's stream. The caller deletes the file's bytes and then calls Free. Both may be
// repeated. RemovedFile returns false if the removal does not end a file.
func RemovedFile(image map[string]events.DynamoDBAttributeValue) (file.File, bool) {
	text := textOf(image)
	boolean := func(name string) bool {
		value, there := image[name]
		return there && value.DataType() == events.DataTypeBoolean && value.Boolean()
	}
	f := file.File{
		ID: text("file_id"), Account: text("file_account"), MD5: text("md5"), Blob: text("blob_name"),
		Pending: boolean("promised"),
	}
	number := func(name string) int64 {
		value, there := image[name]
		if !there || value.DataType() != events.DataTypeNumber {
			return 0
		}
		n, _ := value.Integer()
		return n
	}
	f.Size, f.Upload.Bytes = number("size_bytes"), number("promise_bytes")
	own := strings.HasPrefix(text("id"), filePrefix)
	unkept := text("id") == promiseItem && f.Pending
	return f, (own || unkept) && f.ID != "" && f.Account != "" && f.Blob != ""
}
