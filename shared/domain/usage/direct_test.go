package usage_test

import (
	"context"
	"errors"
	"testing"

	"cutroom/shared/domain/usage"
)

// stubborn adds each record, but at first reports failures.
type stubborn struct {
	usage.Store
	failures int
	ids      []string
}

func (s *stubborn) Add(ctx context.Context, records []usage.Record) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.ids = append(s.ids, records[0].ID)
	if len(s.ids) <= s.failures {
		return errors.New("the response was lost")
	}
	return nil
}

// The write continues after its caller has gone.
func TestDirectRetriesWithTheSameID(t *testing.T) {
	gone, leave := context.WithCancel(t.Context())
	leave()
	for failures, want := range map[int]bool{0: true, 2: true, 3: false} {
		store := &stubborn{failures: failures}
		drawn := 0
		err := usage.NewDirect(store, func() string { drawn++; return "id" }).Record(gone, usage.Record{Account: "acme"})
		if (err == nil) != want || drawn != 1 || len(store.ids) != min(failures+1, 3) {
			t.Errorf("%d failures: %v after %v, %d ids", failures, err, store.ids, drawn)
		}
	}
}
