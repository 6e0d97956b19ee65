package fleet_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"cutroom/shared/domain/fleet"
	"cutroom/shared/domain/job"
)

var start = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

var rules = fleet.Rules{Min: 0, Max: 4, Backlog: 2, Idle: 10 * time.Minute}

func TestDecideCountsWorkers(t *testing.T) {
	ago := func(d time.Duration) time.Time { return start.Add(-d) }
	for name, c := range map[string]struct {
		rules         fleet.Rules
		jobs, desired int
		state         fleet.State
		count         int
		excess        time.Time
	}{
		"no jobs and no workers":                {rules: rules},
		"the first job":                         {rules: rules, jobs: 1, count: 1},
		"a backlog":                             {rules: rules, jobs: 5, desired: 1, count: 3},
		"a backlog beyond the maximum":          {rules: rules, jobs: 500, desired: 1, count: 4},
		"a negative length":                     {rules: rules, jobs: -3},
		"woken, and the job is not visible yet": {rules: rules, desired: 1, state: fleet.State{WokenAt: ago(time.Minute)}, count: 1, excess: start},
		"woken, and the update failed":          {rules: rules, state: fleet.State{WokenAt: ago(time.Minute)}, count: 1},
		"woken by a clock ahead of this one":    {rules: rules, state: fleet.State{WokenAt: ago(-time.Second)}, count: 1},
		"the first change without work":         {rules: rules, desired: 2, count: 2, excess: start},
		"a later change without work":           {rules: rules, desired: 2, state: fleet.State{ExcessSince: ago(9 * time.Minute)}, count: 2, excess: ago(9 * time.Minute)},
		"idle for long enough":                  {rules: rules, desired: 2, state: fleet.State{ExcessSince: ago(10 * time.Minute)}},
		"idle for long, woken a moment ago":     {rules: rules, desired: 2, state: fleet.State{ExcessSince: ago(time.Hour), WokenAt: ago(time.Second)}, count: 1, excess: ago(time.Hour)},
		"fewer jobs for long enough":            {rules: rules, jobs: 3, desired: 4, state: fleet.State{ExcessSince: ago(10 * time.Minute)}, count: 2},
		"work again":                            {rules: rules, jobs: 4, desired: 2, state: fleet.State{ExcessSince: ago(9 * time.Minute)}, count: 2},
		"an excess since a time in the future":  {rules: rules, desired: 2, state: fleet.State{ExcessSince: ago(-time.Hour)}, count: 2, excess: start},
		"a minimum number":                      {rules: fleet.Rules{Min: 2, Max: 4, Backlog: 2, Idle: 10 * time.Minute}, count: 2},
		"a lowered maximum":                     {rules: rules, jobs: 500, desired: 9, count: 4},
		"a lowered maximum without jobs":        {rules: rules, desired: 9, count: 4, excess: start},
	} {
		t.Run(name, func(t *testing.T) {
			count, excess := c.rules.Decide(start, c.jobs, c.desired, c.state)
			if count != c.count || !excess.Equal(c.excess) {
				t.Errorf("got %d workers, too many since %v; want %d, %v", count, excess, c.count, c.excess)
			}
		})
	}
}

func TestInvalidRulesAreRejected(t *testing.T) {
	for name, r := range map[string]fleet.Rules{
		"no worker at all":            {Backlog: 1, Idle: time.Hour},
		"a minimum above the maximum": {Min: 3, Max: 2, Backlog: 1, Idle: time.Hour},
		"below zero":                  {Min: -1, Max: 2, Backlog: 1, Idle: time.Hour},
		"no backlog":                  {Max: 2, Idle: time.Hour},
		"shorter than queues lag":     {Max: 2, Backlog: 1, Idle: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			if r.Validate() == nil {
				t.Error("the rules were accepted")
			}
		})
	}
	if err := rules.Validate(); err != nil {
		t.Error(err)
	}
}

// backend stands in for the store, the queues and the ECS service. Each call can fail or run a hook.
type backend struct {
	state   fleet.State
	jobs    int
	desired int
	running int
	saw     int
	fails   string
	// stopping is called before the number of workers is set to 0.
	stopping func()
}

var errPart = errors.New("throttled")

func (p *backend) fail(what string) error {
	if p.fails == what {
		return errPart
	}
	return nil
}

func (p *backend) Read(context.Context) (fleet.State, error) { return p.state, p.fail("read") }

func (p *backend) Wake(_ context.Context, at time.Time) error {
	if err := p.fail("wake"); err != nil {
		return err
	}
	p.state.WokenAt = at
	return nil
}

func (p *backend) Saw(_ context.Context, since time.Time, seen job.Fleet) error {
	if err := p.fail("excess"); err != nil {
		return err
	}
	p.state.ExcessSince, p.state.Fleet = since, seen
	p.saw++
	return nil
}

func (p *backend) Length(_ context.Context, lane job.Lane) (int, error) {
	if lane == job.ImageLane {
		return 0, p.fail("image")
	}
	return p.jobs, p.fail("video")
}

func (p *backend) Tasks(context.Context) (desired, running int, err error) {
	return p.desired, p.running, p.fail("desired")
}

func (p *backend) SetDesired(_ context.Context, n int) error {
	if err := p.fail("set"); err != nil {
		return err
	}
	if n == 0 && p.stopping != nil {
		p.stopping()
	}
	p.desired = n
	return nil
}

func newFleet(p *backend, now *time.Time) *fleet.Fleet {
	return &fleet.Fleet{Rules: rules, Store: p, Lengths: p, Service: p, Now: func() time.Time { return *now }}
}

// Workers are stopped only by a check in which every read succeeded.
func TestFailedCheckChangesNothing(t *testing.T) {
	for _, fails := range []string{"read", "video", "image", "desired", "excess", "set"} {
		t.Run(fails, func(t *testing.T) {
			now := start
			p := &backend{desired: 2, state: fleet.State{ExcessSince: start.Add(-time.Hour)}, fails: fails}
			if _, err := newFleet(p, &now).Check(t.Context()); !errors.Is(err, errPart) {
				t.Errorf("Check returned %v, want the error", err)
			}
			if p.desired != 2 {
				t.Errorf("%d workers", p.desired)
			}
		})
	}
}

func TestWakeDuringStopKeepsWorker(t *testing.T) {
	now := start
	p := &backend{desired: 1, state: fleet.State{WokenAt: start.Add(-time.Hour), ExcessSince: start.Add(-time.Hour)}}
	f := newFleet(p, &now)
	p.stopping = func() {
		p.stopping = nil
		if woken, err := f.Wake(t.Context()); woken.Rose() || err != nil {
			t.Errorf("woken: %v, %v, want no change because the worker still runs", woken, err)
		}
	}
	change, err := f.Check(t.Context())
	if err != nil || change.To != 1 || p.desired != 1 {
		t.Errorf("%+v, %v; %d workers", change, err, p.desired)
	}
}

// A check's process may die after it stopped the workers and before its second read.
func TestNextCheckRepairsInterruptedStop(t *testing.T) {
	now := start
	p := &backend{desired: 1, state: fleet.State{WokenAt: start.Add(-time.Hour), ExcessSince: start.Add(-time.Hour)}}
	f := newFleet(p, &now)
	p.stopping = func() {
		p.stopping = nil
		if _, err := f.Wake(t.Context()); err != nil {
			t.Error(err)
		}
		p.fails = "read"
	}
	if _, err := f.Check(t.Context()); err == nil || p.desired != 0 {
		t.Fatalf("%v; %d workers", err, p.desired)
	}
	p.fails, now = "", now.Add(time.Minute)
	if change, err := f.Check(t.Context()); err != nil || change.To != 1 || p.desired != 1 {
		t.Errorf("%+v, %v; %d workers", change, err, p.desired)
	}
}

func TestWakeRaisesWorkerCount(t *testing.T) {
	t.Run("from zero workers", func(t *testing.T) {
		now, p := start, &backend{}
		woken, err := newFleet(p, &now).Wake(t.Context())
		if !woken.Rose() || err != nil || p.desired != 1 || !p.state.WokenAt.Equal(start) {
			t.Errorf("woken: %v, %v; %+v", woken, err, p)
		}
	})
	t.Run("with running workers", func(t *testing.T) {
		now, p := start, &backend{desired: 3}
		woken, err := newFleet(p, &now).Wake(t.Context())
		if woken.Rose() || err != nil || p.desired != 3 || !p.state.WokenAt.Equal(start) {
			t.Errorf("woken: %v, %v; %+v", woken, err, p)
		}
	})
	t.Run("as many as the queues need", func(t *testing.T) {
		for desired, want := range []int{4, 4, 4, 4, 4, 5} { // raised to 4, never lowered
			now, p := start, &backend{jobs: 9, desired: desired}
			woken, err := newFleet(p, &now).Wake(t.Context())
			if woken.Rose() != (desired < want) || err != nil || p.desired != want {
				t.Errorf("from %d: %+v, %v; %d workers", desired, woken, err, p.desired)
			}
		}
	})
	t.Run("the queues cannot be read", func(t *testing.T) {
		now, p := start, &backend{fails: "video"}
		if _, err := newFleet(p, &now).Wake(t.Context()); !errors.Is(err, errPart) || p.desired != 1 {
			t.Errorf("got %v and %d workers, want one worker", err, p.desired)
		}
	})
	t.Run("again within a minute", func(t *testing.T) {
		now, p := start, &backend{state: fleet.State{WokenAt: start.Add(-59 * time.Second)}}
		woken, err := newFleet(p, &now).Wake(t.Context())
		if !woken.Rose() || err != nil || p.desired != 1 || p.state.WokenAt.Equal(start) {
			t.Errorf("woken: %v, %v; %+v", woken, err, p)
		}
	})
	t.Run("makes no call for half a minute", func(t *testing.T) {
		now, p := start, &backend{}
		f := newFleet(p, &now)
		for _, wait := range []time.Duration{0, 29 * time.Second} {
			now, p.fails = start.Add(wait), map[bool]string{true: "read"}[wait > 0]
			if woken, err := f.Wake(t.Context()); woken.Rose() != (wait == 0) || err != nil {
				t.Errorf("after %v: woken: %v, %v", wait, woken, err)
			}
		}
		now = start.Add(30 * time.Second)
		if _, err := f.Wake(t.Context()); !errors.Is(err, errPart) {
			t.Errorf("after half a minute: %v", err)
		}
	})
	for _, fails := range []string{"read", "wake", "desired", "set"} {
		t.Run(fails+" fails", func(t *testing.T) {
			now, p := start, &backend{fails: fails}
			if _, err := newFleet(p, &now).Wake(t.Context()); !errors.Is(err, errPart) {
				t.Errorf("Wake returned %v, want the error", err)
			}
		})
	}
}
