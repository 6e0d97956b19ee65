package fleet_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"cutroom/shared/domain/fleet"
)

func TestFollowCountsRestOfBurst(t *testing.T) {
	for name, c := range map[string]struct {
		counts      []int // number of jobs, at wake-up and at each later check
		ends        int   // the wait during which the context ends; 0 means never
		fails       bool  // whether the second check fails
		want, waits int
	}{
		"one job":            {counts: []int{1}, want: 1, waits: 1},
		"a burst":            {counts: []int{1, 5, 5}, want: 3, waits: 2},
		"a burst that grows": {counts: []int{1, 3, 5, 7, 100}, want: 4, waits: fleet.MostRises},
		"fewer again":        {counts: []int{6, 1}, want: 3, waits: 1},
		"no time left":       {counts: []int{1, 7}, ends: 1, want: 1, waits: 1},
		"a check fails":      {counts: []int{1, 7}, fails: true, want: 1, waits: 1},
	} {
		t.Run(name, func(t *testing.T) {
			now, p := start, &backend{jobs: c.counts[0]}
			f := newFleet(p, &now)
			change, err := f.Wake(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			waits := 0
			change, err = f.Follow(t.Context(), change, func(_ context.Context, d time.Duration) bool {
				waits++
				now, p.jobs = now.Add(d), c.counts[min(waits, len(c.counts)-1)]
				if c.fails {
					p.fails = "video"
				}
				return waits != c.ends
			})
			if c.fails != errors.Is(err, errPart) || !c.fails && err != nil {
				t.Errorf("Follow returned %v", err)
			}
			if p.desired != c.want || change.From != 0 || change.To != c.want || waits != c.waits {
				t.Errorf("%d workers after %d waits, %+v; want %d after %d", p.desired, waits, change, c.want, c.waits)
			}
			if p.state.Fleet.SeenAt != (time.Time{}) {
				t.Error("a wake recorded facts that only a check may record")
			}
		})
	}
	t.Run("the number did not rise", func(t *testing.T) {
		now, p := start, &backend{jobs: 1, desired: 2}
		f := newFleet(p, &now)
		_, err := f.Follow(t.Context(), fleet.Change{From: 2, To: 2}, func(context.Context, time.Duration) bool {
			t.Error("Follow waits although the number did not rise")
			return true
		})
		if err != nil {
			t.Error(err)
		}
	})
}
