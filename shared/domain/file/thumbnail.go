package file

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"

	"cutroom/shared/domain/blob"
	"cutroom/shared/domain/fault"
)

const (
	filePrefix      = "files/"
	thumbnailPrefix = "thumbnails"
	MaxThumbnail    = 64 << 10 // in bytes
)

// ThumbnailBlob returns the blob name of a thumbnail (docs/contract/media.md#thumbnails-of-files).
func ThumbnailBlob(of string) string {
	return thumbnailPrefix + "/" + strings.TrimPrefix(of, filePrefix)
}

// Thumbnail returns an empty picture if the file cannot have a thumbnail.
//
// Errors: fault.NotFound if no thumbnail has been made yet.
func Thumbnail(ctx context.Context, blobs blob.Store, of string) ([]byte, error) {
	stored, err := blobs.Open(ctx, ThumbnailBlob(of), 0, MaxThumbnail)
	if err != nil {
		return nil, fmt.Errorf("file: open a thumbnail: %w", err)
	}
	defer stored.Close()
	picture, err := io.ReadAll(stored)
	if err != nil {
		return nil, fmt.Errorf("file: read a thumbnail: %w", err)
	}
	return picture, nil
}

// StoreThumbnail stores a thumbnail, or an empty picture if the file cannot have one. For a deleted
// file it stores nothing. A deletion removes the bytes before the thumbnail, so either the deletion
// sees the thumbnail, or StoreThumbnail sees that the bytes are gone.
//
// Errors: fault.NotFound if the file was deleted.
func StoreThumbnail(ctx context.Context, blobs blob.Store, of string, picture []byte) error {
	name := ThumbnailBlob(of)
	if _, err := blobs.Put(ctx, name, bytes.NewReader(picture)); err != nil {
		return fmt.Errorf("file: store a thumbnail: %w", err)
	}
	_, err := blobs.Head(ctx, of)
	if !fault.Is(err, fault.NotFound) {
		return err
	}
	if failed := blobs.Delete(ctx, name); failed != nil {
		return fmt.Errorf("file: delete the thumbnail of a deleted file: %w", failed)
	}
	return ErrNotFound
}

func DeleteBytes(ctx context.Context, blobs Blobs, f File) error {
	if err := blobs.Delete(ctx, f.Blob); err != nil {
		return fmt.Errorf("file: delete the bytes of %s: %w", f.ID, err)
	}
	if err := blobs.Delete(ctx, ThumbnailBlob(f.Blob)); err != nil {
		return fmt.Errorf("file: delete the thumbnail of %s: %w", f.ID, err)
	}
	return nil
}
