package api

import (
	"context"
	"io"
	"log/slog"
	"time"

	"cutroom/shared/platform/httpserver"
)

// cleanTime is how long the blobs of a request that failed may take to be
// deleted. It begins after the request, whose own time may be over.
const cleanTime = 10 * time.Second

// storedBlobs are the blobs that a request has stored. They go with the request
// unless they are kept.
type storedBlobs struct {
	service *service
	names   []string
	// kept means that the blobs may belong to a record.
	kept bool
}

// store puts a file of at most limit bytes into the blob with the name, which
// discard deletes from now on, and gives its size in bytes and its MD5 in hex.
//
// Errors: tooLarge; those of the content and of the store.
func (b *storedBlobs) store(ctx context.Context, name string, content io.Reader, limit int64, tooLarge error) (size int64, md5 string, err error) {
	b.names = append(b.names, name)
	digest := newDigestReader(content, limit, tooLarge)
	size, err = b.service.Blobs.Put(ctx, name, digest)
	return size, digest.sum(), err
}

// discard deletes the blobs unless they are kept.
func (b *storedBlobs) discard(ctx context.Context) {
	if b.kept || len(b.names) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTime)
	defer cancel()
	for _, name := range b.names {
		if err := b.service.Blobs.Delete(ctx, name); err != nil {
			// The sweeper, or the bucket's lifecycle, deletes it later.
			b.service.Logger.LogAttrs(ctx, slog.LevelWarn, "an uploaded blob was not deleted",
				slog.String("request_id", httpserver.RequestID(ctx)), slog.String("blob", name), slog.Any("error", err))
		}
	}
}
