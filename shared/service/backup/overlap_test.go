package backup_test

import (
	"context"
	"fmt"
	"io"
	"testing"

	"cutroom/shared/service/backup"
)

// overtaken runs another backup just before one of its writes.
type overtaken struct {
	backup.Store
	left  int
	other func()
}

func (o *overtaken) Put(ctx context.Context, name string, r io.Reader) (int64, error) {
	if o.left--; o.left == 0 {
		o.other()
	}
	return o.Store.Put(ctx, name, r)
}

// Buckets have no locks, so backups may run concurrently. Every backup that was reported as done must exist.
func TestConcurrentBackupsStayComplete(t *testing.T) {
	for _, first := range []bool{true, false} {
		refused := 0
		for n := 1; n < 20; n++ {
			w := newWorld(t)
			for i := range 3 {
				w.put(fmt.Sprint("files/", i), fmt.Sprint("content ", i))
			}
			if !first {
				if _, err := w.save(w.kept); err != nil {
					t.Fatal(err)
				}
				w.put("files/0", "replaced")
			}
			met := false
			_, err := w.save(&overtaken{w.kept, n, func() {
				met = true
				if _, err := w.save(w.kept); err != nil {
					t.Fatalf("before write %d: the other: %v", n, err)
				}
			}})
			if !met {
				break
			}
			if err != nil {
				refused++
			}
			w.want(w.kept, w.contents(w.source), w.records)
		}
		if refused < 2 {
			t.Errorf("%d backups were rejected because of another", refused)
		}
	}
}
