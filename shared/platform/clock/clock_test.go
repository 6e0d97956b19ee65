package clock_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cutroom/shared/platform/clock"
)

type machine struct {
	*testing.T
	wall     time.Time
	elapsed  time.Duration
	boot     string
	path     string
	log      bytes.Buffer
	followed time.Duration
}

func newMachine(t *testing.T) *machine {
	return &machine{
		T: t, wall: time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC), elapsed: time.Hour, boot: "one",
		path: filepath.Join(t.TempDir(), "clock"),
	}
}

func (m *machine) open() (*clock.Clock, error) {
	return clock.Open(clock.Config{
		Wall: func() time.Time { return m.wall }, Elapsed: func() time.Duration { return m.elapsed }, Boot: m.boot,
		Path: m.path, Logger: slog.New(slog.NewTextHandler(&m.log, nil)),
	})
}

func (m *machine) mustOpen() *clock.Clock {
	m.Helper()
	k, err := m.open()
	if err != nil {
		m.Fatal(err)
	}
	m.Cleanup(func() { k.Close() })
	return k
}

func (m *machine) pass(k *clock.Clock, d time.Duration) {
	m.Helper()
	for end := m.elapsed + d; m.elapsed < end; {
		step := min(time.Second, end-m.elapsed)
		m.elapsed, m.wall = m.elapsed+step, m.wall.Add(step)
		if err := k.Check(m.Context(),
			func(_ context.Context, by time.Duration) error { m.followed += by; return nil }); err != nil {
			m.Fatal(err)
		}
	}
}

func (m *machine) want(k *clock.Clock, when string, now time.Time, settled bool) {
	m.Helper()
	if got := k.Now(); !got.Equal(now) {
		m.Errorf("%s: the time is %v, want %v", when, got, now)
	}
	if got := k.Settled(); got != settled {
		m.Errorf("%s: settled %t, want %t", when, got, settled)
	}
}

func TestBriefStepsAreIgnored(t *testing.T) {
	for name, step := range map[string]time.Duration{
		"90 seconds back": -90 * time.Second, "five days forward": 5 * 24 * time.Hour, "to 2066": 40 * 365 * 24 * time.Hour,
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			k, right := m.mustOpen(), m.wall
			m.want(k, "at the start", right, true)
			m.wall = m.wall.Add(step)
			m.want(k, "set", right, false)
			m.pass(k, time.Minute)
			m.want(k, "a minute later", right.Add(time.Minute), false)
			if !strings.Contains(m.log.String(), "was set") {
				t.Errorf("the log lacks the step: %s", m.log.String())
			}
			m.wall = m.wall.Add(-step)
			m.pass(k, time.Second)
			m.want(k, "set right", right.Add(61*time.Second), false)
			m.pass(k, clock.Quiet)
			m.want(k, "some time after that", right.Add(61*time.Second+clock.Quiet), true)
			if m.followed != 0 {
				t.Errorf("the clock followed by %v", m.followed)
			}
		})
	}
}

func TestPersistentStepsAreAdopted(t *testing.T) {
	m := newMachine(t)
	k, right := m.mustOpen(), m.wall
	const step = -90 * time.Second
	m.wall = m.wall.Add(step)
	m.pass(k, clock.Hold)
	m.want(k, "held", right.Add(clock.Hold), false)
	m.pass(k, 2*time.Second)
	m.want(k, "followed", m.wall, false)
	if m.followed != step {
		t.Errorf("%v was followed", m.followed)
	}
	m.pass(k, clock.Quiet)
	m.want(k, "settled", m.wall, true)

	right = m.wall
	m.wall = m.wall.Add(40 * 365 * 24 * time.Hour)
	m.pass(k, 3*clock.Hold)
	m.want(k, "an absurd step", right.Add(3*clock.Hold), false)
	if m.followed != step {
		t.Errorf("%v was followed", m.followed)
	}
}

// follow is called before a step forward and after a step back.
func TestFollowIsCalledInOrder(t *testing.T) {
	for _, step := range []time.Duration{time.Hour, -time.Hour} {
		m := newMachine(t)
		k := m.mustOpen()
		before := m.wall
		m.wall = m.wall.Add(step)
		m.pass(k, clock.Hold)
		m.elapsed, m.wall = m.elapsed+time.Second, m.wall.Add(time.Second)
		failure := errors.New("the disk is full")
		if err := k.Check(t.Context(), func(context.Context, time.Duration) error { return failure }); !errors.Is(err, failure) {
			t.Errorf("%v", err)
		}
		m.want(k, "not followed", before.Add(clock.Hold+time.Second), false)
		if err := k.Check(t.Context(), func(_ context.Context, by time.Duration) error {
			late := k.Now()
			if want := before.Add(clock.Hold + time.Second + min(step, 0)); by != step || !late.Equal(want) {
				t.Errorf("follow %v at %v, want it at %v", by, late, want)
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
	}
}

func TestStartsAfterClockChanges(t *testing.T) {
	for name, c := range map[string]struct {
		// away is how long the machine, or only the server, is off.
		away time.Duration
		step time.Duration
		boot string
		// want is the clock's expected offset. refused means that opening the clock fails.
		want    time.Duration
		settled bool
		refused bool
	}{
		"another start of the server":                   {away: time.Hour, settled: true},
		"set back meanwhile":                            {away: time.Hour, step: -90 * time.Second},
		"set five days forward meanwhile":               {away: time.Hour, step: 120 * time.Hour},
		"set to 2066 meanwhile":                         {away: time.Hour, step: 40 * 365 * 24 * time.Hour},
		"another start of the machine":                  {away: time.Hour, boot: "two", settled: true},
		"off for days, or set forward":                  {away: time.Hour, step: 120 * time.Hour, boot: "two", want: 120 * time.Hour},
		"a machine that starts in 2066":                 {away: time.Hour, step: 40 * 365 * 24 * time.Hour, boot: "two", refused: true},
		"a machine that starts before it was shut down": {away: time.Hour, step: -3 * time.Hour, boot: "two", want: -time.Hour},
		"a machine that starts in 1970":                 {away: time.Hour, step: -56 * 365 * 24 * time.Hour, boot: "two", refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			k := m.mustOpen()
			m.pass(k, time.Minute)
			if err := k.Close(); err != nil {
				t.Fatal(err)
			}
			m.elapsed, m.wall = m.elapsed+c.away, m.wall.Add(c.away)
			right := m.wall
			m.wall = m.wall.Add(c.step)
			if c.boot != "" {
				m.boot, m.elapsed = c.boot, time.Minute
			}
			k, err := m.open()
			if c.refused {
				if err == nil || !strings.Contains(err.Error(), "the machine's clock is") {
					t.Fatalf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			m.want(k, "started", right.Add(c.want), c.settled)
		})
	}
}

func TestUnreadableFileIsAnError(t *testing.T) {
	m := newMachine(t)
	if err := os.WriteFile(m.path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	m.want(m.mustOpen(), "started", m.wall, true)
}
