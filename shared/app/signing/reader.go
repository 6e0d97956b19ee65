package signing

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"cutroom/shared/domain/origin"
	"cutroom/shared/platform/c2pa"
	"cutroom/shared/platform/fence"
	"cutroom/shared/service/provenance"
)

// readTime is how long it may take to verify a small file.
const readTime = time.Minute

// ReaderConfig is what [NewReader] needs.
type ReaderConfig struct {
	Settings
	Fence *fence.Fence
	// Plan is how results are signed, nil if they are not, and Keeper keeps the identity
	// that the service made for it.
	Plan   *Plan
	Keeper Keeper
	Logger *slog.Logger
}

// Reader verifies the Content Credentials of files, whether results are signed or not. It
// looks for the library when it is first asked, and again until it is there. It is safe for
// concurrent use.
type Reader struct {
	config ReaderConfig
	mu     sync.Mutex
	reader *provenance.Reader
}

// NewReader returns a reader.
func NewReader(c ReaderConfig) *Reader { return &Reader{config: c} }

// Verify returns what the Content Credentials of a file say, and whether that holds.
//
// Errors: origin.ErrNoReader; those of [provenance.Reader.Verify].
func (r *Reader) Verify(ctx context.Context, file *os.File) (origin.Report, error) {
	reader, err := r.find(ctx)
	if err != nil {
		return origin.Report{}, err
	}
	return reader.Verify(ctx, file)
}

func (r *Reader) find(ctx context.Context) (*provenance.Reader, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reader != nil {
		return r.reader, nil
	}
	reader := &provenance.Reader{Time: readTime, Logger: r.config.Logger}
	var err error
	if p := r.config.Plan; p != nil {
		reader.Library, reader.SelfMade = p.library, p.identity == nil
		if reader.Own, err = p.identityOf(ctx, r.config.Keeper); err != nil {
			return nil, err
		}
	} else if reader.Library, err = c2pa.Find(ctx, r.config.Fence, r.config.Library); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("%w: %w", origin.ErrNoReader, err)
	}
	r.reader = reader
	return reader, nil
}
