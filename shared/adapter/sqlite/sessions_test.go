package sqlite_test

import (
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/session"
	"cutroom/shared/domain/session/sessiontest"
)

type machine struct {
	boot string
	now  atomic.Int64 // holds a time.Duration
}

func (m *machine) Boot() string         { return m.boot }
func (m *machine) Now() time.Duration   { return time.Duration(m.now.Load()) }
func (m *machine) pass(d time.Duration) { m.now.Add(int64(d)) }

func TestSessionsConform(t *testing.T) {
	sessiontest.Run(t, func(t *testing.T) sessiontest.Harness {
		clock := &machine{boot: "first"}
		return sessiontest.Harness{Store: open(t).Sessions(clock), Pass: clock.pass}
	})
}

// After the restart, the machine's clock may show any time.
func TestRebootEndsLeases(t *testing.T) {
	path, ctx := filepath.Join(t.TempDir(), "cutroom.db"), t.Context()
	before := &machine{boot: "first"}
	before.pass(time.Hour)
	sessions := openAt(t, path).Sessions(before)
	slot := session.Slot{ID: "session_1", Account: "acme", Epoch: "epoch-1"}
	if err := sessions.Begin(ctx, slot.Epoch, ""); err != nil {
		t.Fatal(err)
	}
	if err := sessions.Take(ctx, slot, 1); err != nil {
		t.Fatal(err)
	}
	after := openAt(t, path).Sessions(&machine{boot: "second"})
	if n, err := after.Active(ctx, "acme"); err != nil || n != 0 {
		t.Errorf("%d sessions after the restart, %v", n, err)
	}
	if err := after.Renew(ctx, slot.Epoch); !fault.Is(err, fault.Conflict) {
		t.Errorf("renewing the old lease: %v", err)
	}
	if err := after.Begin(ctx, "epoch-2", ""); err != nil {
		t.Fatal(err)
	}
	next := session.Slot{ID: "session_2", Account: "acme", Epoch: "epoch-2"}
	if err := after.Take(ctx, next, 1); err != nil {
		t.Errorf("the slot is not free: %v", err)
	}
}
