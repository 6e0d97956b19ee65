package sqlite

import (
	"context"
	"sync"

	"cutroom/shared/domain/job"
)

var _ job.Watcher = (*Jobs)(nil)

type watches struct {
	mu    sync.Mutex
	byJob map[string]map[chan struct{}]bool
}

// Watch reports only changes made by this process.
func (s *Jobs) Watch(id string) (changed <-chan struct{}, stop func()) {
	w := &s.db.watches
	// The channel's single buffered value stands for all changes since the last read.
	watch := make(chan struct{}, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.byJob == nil {
		w.byJob = map[string]map[chan struct{}]bool{}
	}
	if w.byJob[id] == nil {
		w.byJob[id] = map[chan struct{}]bool{}
	}
	w.byJob[id][watch] = true
	return watch, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.byJob[id], watch)
		if len(w.byJob[id]) == 0 {
			delete(w.byJob, id)
		}
	}
}

func (w *watches) changed(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for watch := range w.byJob[id] {
		select {
		case watch <- struct{}{}:
		default:
		}
	}
}

func (s *Jobs) change(ctx context.Context, what, id string, do func(ctx context.Context, tx *transaction) error) error {
	err := s.db.write(ctx, what, do)
	if err == nil {
		s.db.watches.changed(id)
	}
	return err
}

func (s *Jobs) changeAnyway(ctx context.Context, what, id string,
	do func(ctx context.Context, tx *transaction) error) error {
	err := s.db.writeAnyway(ctx, what, do)
	if err == nil {
		s.db.watches.changed(id)
	}
	return err
}
