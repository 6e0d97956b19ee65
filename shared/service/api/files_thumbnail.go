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

// Posters makes thumbnails of media files.
//
// Errors: *engine.Error with the code invalid_input for a file that cannot be decoded.
type Posters interface {
	// Posters returns a thumbnail of each file as a JPEG, of a video from its first frames. It may
	// write into the folder.
	Posters(ctx context.Context, folder string, of []engine.Depicted) ([][]byte, error)
}

const (
	// turnWait is how long a request waits for its turn to make a thumbnail or to verify a file.
	// MaxTurn limits the turn, plus the time for the file's size. It is a third of turnWait, so
	// that several slow turns do not use up the wait of others.
	turnWait = 20 * time.Second
	MaxTurn  = turnWait / 3
	// turnsAtOnce limits concurrent thumbnails, and concurrent verifications. One account has at
	// most one of these turns.
	turnsAtOnce = 2
	// posingRetry is the Retry-After if a thumbnail's turn did not come.
	posingRetry = 2 * time.Second
)

// showFileThumbnail serves GET /v1/uploads/{file_id}/thumbnail
// (docs/contract/media.md#thumbnails-of-files).
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
	sendPicture(w, r, picture, forAnHour, `"`+f.MD5+`-thumbnail"`, disposition("inline", stem(f), f.ID, ".jpg"))
	return nil
}

// takeTurn waits for an account's turn, at most turnWait, and reports whether it came.
func takeTurn(ctx context.Context, turns *ratelimit.Turns, account string) bool {
	ctx, cancel := context.WithTimeout(ctx, turnWait)
	defer cancel()
	return turns.Take(ctx, account)
}

// makeThumbnail makes a file's thumbnail and stores it. Accounts take turns. An empty thumbnail is
// stored for a file that cannot have one, so that a broken file is read once.
//
// Errors: fault.NotFound if the file is gone, or this server makes no thumbnails; fault.Unavailable
// if the turn does not come, the machine is too busy, or it lacks something.
func (s *service) makeThumbnail(ctx context.Context, f file.File) ([]byte, error) {
	if s.Posters == nil {
		return nil, errNoThumbnail
	}
	if !takeTurn(ctx, s.posing, f.Account) {
		return nil, cmp.Or(ctx.Err(), thumbnailLater(nil, "Other thumbnails are being made. Try again."))
	}
	defer s.posing.Release(f.Account)
	// Another request may have just made it.
	picture, err := file.Thumbnail(ctx, s.Blobs, f.Blob)
	if !fault.Is(err, fault.NotFound) {
		return picture, err
	}
	within, cancel := context.WithTimeout(ctx, MaxTurn)
	defer cancel()
	picture, err = s.pose(within, f)
	if fault.Is(err, fault.NotFound) {
		return nil, file.ErrNotFound // deleted or expired a moment ago
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
		// The limits of processor time refuse slow files earlier, so here the machine is busy.
		return nil, thumbnailLater(nil, "The thumbnail cannot be made now. Try again.")
	case err != nil:
		return nil, fmt.Errorf("make the thumbnail of %s: %w", f.ID, err)
	}
	return picture, file.StoreThumbnail(ctx, s.Blobs, f.Blob, picture)
}

// thumbnailLater returns the refusal of a request that may soon be repeated.
func thumbnailLater(cause error, message string) error {
	later := fault.Wrap(cause, fault.Unavailable, "%s", message)
	later.RetryAfter = posingRetry
	return later
}

// pose returns the thumbnail of a file. It is empty unless the file is an image or a video of an
// accepted size.
//
// Errors: fault.NotFound; as Posters.
func (s *service) pose(ctx context.Context, f file.File) (picture []byte, err error) {
	// The recorded type may be the client's declaration.
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

// kindOf returns the type of a file's bytes. ok is true for an image or a video within the limits of inputs
// (docs/contract/media.md#input-limits); a video may be longer, because only its beginning is read.
//
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
