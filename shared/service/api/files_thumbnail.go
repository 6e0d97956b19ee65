package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"cutroom/shared/domain/blob"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/file"
	"cutroom/shared/domain/job"
	"cutroom/shared/domain/media"
	"cutroom/shared/domain/ratelimit"
	"cutroom/shared/engine"
)

// Errors: *engine.Error with code invalid_input if a file cannot be decoded.
type Posters interface {
	// Posters returns a JPEG of each file. The JPEG of a video shows one of its first frames. Posters may write to
	// the folder.
	Posters(ctx context.Context, folder string, of []engine.Depicted) ([][]byte, error)
}

const (
	// turnWait limits the wait for a turn to make a thumbnail or verify a file. The turn itself is limited to MaxTurn
	// plus time for the file's size. MaxTurn is short, so that a few slow turns do not make others time out.
	turnWait = 20 * time.Second
	MaxTurn  = turnWait / 3
	// maxTurns limits concurrent thumbnails and concurrent verifications. Each account may have one of each.
	maxTurns = 2
	// After a thumbnail that took longThumbnail, its account pauses for three times as long if others want thumbnails too.
	longThumbnail = time.Second
	// thumbnailRetry is the Retry-After value when too many thumbnails are being made.
	thumbnailRetry = 2 * time.Second
)

// See docs/contract/media.md#thumbnails-of-files.
func (s *service) showFileThumbnail(w http.ResponseWriter, r *http.Request, c call) error {
	f, err := s.Files.Get(r.Context(), c.who.Account(), r.PathValue("file_id"))
	if err != nil {
		return err
	}
	picture, err := file.Thumbnail(r.Context(), s.Blobs, f.Blob)
	if fault.Is(err, fault.NotFound) {
		picture, err = s.makeThumbnail(r.Context(), f)
	}
	if err != nil {
		return err
	}
	if len(picture) == 0 {
		return errNoThumbnail
	}
	source := blobRange{file.ThumbnailBlob(f.Blob), 0, int64(len(picture))}
	return s.sendPicture(w, r, source, forAnHour, `"`+f.MD5+`-thumbnail"`, disposition("inline", stem(f), f.ID, ".jpg"))
}

func takeTurn(ctx context.Context, turns *ratelimit.Turns, account string) bool {
	ctx, cancel := context.WithTimeout(ctx, turnWait)
	defer cancel()
	return turns.Take(ctx, account)
}

// makeThumbnail makes and stores a thumbnail. Accounts take turns. For a file that cannot have a thumbnail, it stores
// an empty thumbnail, so that a broken file is read only once.
//
// Errors: fault.NotFound if the file is gone, or if this server makes no thumbnails; fault.Unavailable if the wait
// times out or the machine is overloaded.
func (s *service) makeThumbnail(ctx context.Context, f file.File) ([]byte, error) {
	if s.Posters == nil {
		return nil, errNoThumbnail
	}
	waiting, cancel := context.WithTimeout(ctx, turnWait)
	defer cancel()
	begun, picture := false, []byte(nil)
	err := s.thumbnailTurns.Slowly(waiting, f.Account, 4, func() (err error) {
		begun = true
		picture, err = s.makeThumbnailNow(ctx, f)
		return err
	})
	if !begun {
		return nil, cmp.Or(ctx.Err(), thumbnailLater(nil, "Other thumbnails are being made. Try again."))
	}
	return picture, err
}

// makeThumbnailNow is makeThumbnail once it is the account's turn.
func (s *service) makeThumbnailNow(ctx context.Context, f file.File) ([]byte, error) {
	// Another request may have made the thumbnail in the meantime.
	picture, err := file.Thumbnail(ctx, s.Blobs, f.Blob)
	if !fault.Is(err, fault.NotFound) {
		return picture, err
	}
	within, cancel := context.WithTimeout(ctx, MaxTurn)
	defer cancel()
	picture, err = s.renderThumbnail(within, f)
	if fault.Is(err, fault.NotFound) {
		return nil, file.ErrNotFound // deleted or expired in the meantime
	}
	var refused *engine.Error
	switch {
	case errors.As(err, &refused) && refused.Code == job.InvalidInput:
		picture = nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.As(err, &refused):
		return nil, thumbnailLater(err, "The thumbnail cannot be made now. Try again.")
	case within.Err() != nil:
		// A slow file would have exceeded the CPU time limit first, so the machine must be busy.
		return nil, thumbnailLater(nil, "The thumbnail cannot be made now. Try again.")
	case err != nil:
		return nil, fmt.Errorf("make the thumbnail of %s: %w", f.ID, err)
	}
	return picture, file.StoreThumbnail(ctx, s.Blobs, f.Blob, picture)
}

// thumbnailLater returns the error for a request that may soon succeed.
func thumbnailLater(cause error, message string) error {
	later := fault.Wrap(cause, fault.Unavailable, "%s", message)
	later.RetryAfter = thumbnailRetry
	return later
}

// renderThumbnail returns nil unless the file is an image or video of an accepted size. Errors: fault.NotFound; as
// for Posters.
func (s *service) renderThumbnail(ctx context.Context, f file.File) (picture []byte, err error) {
	// Do not rely on the recorded type, which may be just the client's declaration.
	kind, ok, err := s.kindOf(ctx, f)
	if err != nil || !ok {
		return nil, err
	}
	folder, err := os.MkdirTemp(s.Scratch, "thumbnail-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	path := filepath.Join(folder, "file")
	if err := blob.Fetch(ctx, s.Blobs, f.Blob, path); err != nil {
		return nil, err
	}
	posters, err := s.Posters.Posters(ctx, folder, []engine.Depicted{{Input: engine.Input{Path: path, MIME: kind.MIME}}})
	if err != nil {
		return nil, err
	}
	return posters[0], nil
}

// kindOf detects the type of a file's content. ok is true if the file is an image or video within
// docs/contract/media.md#input-limits. A video may be longer, because only its beginning is read.
// Errors: fault.NotFound.
func (s *service) kindOf(ctx context.Context, f file.File) (media.Type, bool, error) {
	kind, known, err := typeOfBlob(ctx, s.Blobs, f.Blob)
	if err != nil || !known {
		return kind, false, err
	}
	info, err := media.Inspect(blob.ReaderAt{Context: ctx, Store: s.Blobs, Name: f.Blob}, f.Size, kind.MIME)
	if err != nil {
		return kind, false, fmt.Errorf("inspect a file: %w", err)
	}
	info.Duration = 0
	within := media.CheckVideo
	if kind.Image {
		within = media.CheckImage
	}
	return kind, within(info, s.Catalog.Limits) == nil, nil
}
