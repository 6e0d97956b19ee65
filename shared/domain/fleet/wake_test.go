package fleet_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"cutroom/shared/domain/fleet"
)

// The first job of a burst wakes; the others are counted later, within the same minute.
func TestFollowSeesTheRestOfABurst(t *testing.T) {
	for name, c := range map[string]struct {
		counts      []int // of jobs, at the wake and at each look afterwards
		ends        int   // the context ends at this wait, 0 for never
		fails       bool  // the second look fails
		want, waits int
	}{
		"one job":            {counts: []int{1}, want: 1, waits: 1},
		"a burst":            {counts: []int{1, 5, 5}, want: 3, waits: 2},
		"a burst that grows": {counts: []int{1, 3, 5, 7, 100}, want: 4, waits: fleet.MostRises},
		"fewer again":        {counts: []int{6, 1}, want: 3, waits: 1},
		"no time left":       {counts: []int{1, 7}, ends: 1, want: 1, waits: 1},
		"a look fails":       {counts: []int{1, 7}, fails: true, want: 1, waits: 1},
	} {
		t.Run(name, func(t *testing.T) {
			now, p := start, &parts{jobs: c.counts[0]}
			f := newFleet(p, &now)
			look, err := f.Wake(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			waits := 0
			look, err = f.Follow(t.Context(), look, func(_ context.Context, d time.Duration) bool {
				waits++
				now, p.jobs = now.Add(d), c.counts[min(waits, len(c.counts)-1)]
				if c.fails {
					p.fails = "video"
				}
				return waits != c.ends
			})
			if c.fails != errors.Is(err, errPart) || !c.fails && err != nil {
				t.Errorf("returned %v", err)
			}
			if p.desired != c.want || look.From != 0 || look.To != c.want || waits != c.waits {
				t.Errorf("%d workers after %d waits, %+v; want %d after %d", p.desired, waits, look, c.want, c.waits)
			}
			if p.stamp.Fleet.SeenAt != (time.Time{}) {
				t.Error("a wake recorded facts that only a check may record")
			}
		})
	}
	t.Run("nothing was raised", func(t *testing.T) {
		now, p := start, &parts{jobs: 1, desired: 2}
		f := newFleet(p, &now)
		_, err := f.Follow(t.Context(), fleet.Look{From: 2, To: 2}, func(context.Context, time.Duration) bool {
			t.Error("a run waits that has nothing to wait for")
			return true
		})
		if err != nil {
			t.Error(err)
		}
	})
}
