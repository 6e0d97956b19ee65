package batches

import (
	"context"
	"sync"

	"cutroom/shared/domain/batch"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/file"
)

// space counts a batch's blobs toward its account's storage.
type space struct {
	storage batch.Storage

	mu   sync.Mutex
	held file.Reservation
	// used is the size of the blobs. A crashed process may have reserved more.
	used int64
	// full means that the account may be out of storage.
	full bool
}

// newSpace returns a batch's space. It reserves one byte, which every batch needs, because no input is empty.
func newSpace(ctx context.Context, storage batch.Storage, b batch.Batch) (*space, error) {
	held, err := storage.Hold(ctx, batch.Reservation(b), 1, 0)
	return &space{storage: storage, held: held, used: held.Bytes, full: true}, err
}

// fits reports whether an account with the given storage limit, in bytes, has space for more results. It asks the
// store only if the account was full before.
func (s *space) fits(ctx context.Context, limit int64) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.full {
		return true, nil
	}
	held, err := s.storage.Hold(ctx, s.held, s.held.Bytes+1, limit)
	if fault.Is(err, fault.Limited) {
		return false, nil
	}
	if err == nil {
		s.held, s.full = held, false
	}
	return err == nil, err
}

// hold reserves space for completed calls' results, even if the account's storage is full.
func (s *space) hold(ctx context.Context, bytes, limit int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	need := s.used + bytes
	if need <= s.held.Bytes {
		return nil
	}
	held, err := s.storage.Hold(ctx, s.held, need, limit)
	if s.full = fault.Is(err, fault.Limited); s.full {
		held, err = s.storage.Hold(ctx, s.held, need, 0)
	}
	if err == nil {
		s.held = held
	}
	return err
}

func (s *space) keep(bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used += bytes
}
