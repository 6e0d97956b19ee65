package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"cutroom/shared/domain/session"
)

// Machine is the clock that times leases. All processes on the file share it, and nothing sets it
// (see package boottime).
type Machine interface {
	// Now returns the time since the machine's start.
	Now() time.Duration
	// Boot identifies the machine's start. Leases of another boot are over.
	Boot() string
}

// Sessions implements session.Store for the processes of one machine. Counting an account's
// sessions takes one read. Nothing survives a restart of the machine, so no connect or close waits
// for the disk.
type Sessions struct {
	db      *DB
	machine Machine
}

var _ session.Store = (*Sessions)(nil)

func (db *DB) Sessions(machine Machine) *Sessions { return &Sessions{db, machine} }

// deadLeaseAge is how long a dead epoch is kept: longer than any call about it takes.
const deadLeaseAge = time.Hour

// staleLease is the condition that a lease is over, whether marked or not.
const staleLease = "(dead or boot <> ?1 or renewed_at <= ?2)"

// moment returns the boot, the current time, and the renewal time of a lease that has just become
// stale, in milliseconds.
func (s *Sessions) moment() (boot string, now, stale int64) {
	now = s.machine.Now().Milliseconds()
	return s.machine.Boot(), now, now - session.TakeAfter.Milliseconds()
}

func (s *Sessions) Begin(ctx context.Context, epoch, address string) error {
	return s.db.writeVolatile(ctx, "begin a lease", func(ctx context.Context, tx *transaction) error {
		boot, now, _ := s.moment()
		if _, err := tx.ExecContext(ctx, "delete from session_lease where boot <> ? or dead and renewed_at <= ?",
			boot, now-deadLeaseAge.Milliseconds()); err != nil {
			return err
		}
		begun, err := tx.ExecContext(ctx, `insert into session_lease (epoch, boot, renewed_at, address)
			values (?, ?, ?, ?)
			on conflict do update set renewed_at = excluded.renewed_at where not dead`, epoch, boot, now, address)
		return expectLease(begun, err)
	})
}

func (s *Sessions) Address(ctx context.Context, epoch string) (address string, err error) {
	boot, _, stale := s.moment()
	err = s.db.lookup.QueryRowContext(ctx, "select address from session_lease where epoch = ?3 and not "+staleLease, boot,
		stale, epoch).Scan(&address)
	if errors.Is(err, sql.ErrNoRows) {
		return "", session.ErrLeaseOver
	}
	return address, storeError("find an instance", err)
}

func (s *Sessions) Renew(ctx context.Context, epoch string) error {
	return s.db.writeVolatile(ctx, "renew a lease", func(ctx context.Context, tx *transaction) error {
		boot, now, _ := s.moment()
		return expectLease(tx.ExecContext(ctx,
			"update session_lease set renewed_at = ? where epoch = ? and boot = ? and not dead", now, epoch, boot))
	})
}

func expectLease(changed sql.Result, err error) error {
	if err != nil {
		return err
	}
	n, err := changed.RowsAffected()
	if err == nil && n == 0 {
		return session.ErrLeaseOver
	}
	return err
}

func (s *Sessions) End(ctx context.Context, epoch string) error {
	return s.db.writeVolatile(ctx, "end a lease", func(ctx context.Context, tx *transaction) error {
		if _, err := tx.ExecContext(ctx, "update session_lease set dead = 1 where epoch = ?", epoch); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "delete from session_ticket where epoch = ?", epoch); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, "delete from session_slot where epoch = ?", epoch)
		return err
	})
}

// hasLine is true if tickets wait for a slot of the account.
const hasLine = `exists (select 1 from session_ticket join session_lease using (epoch) where account = ?4 and ` + waits + `)`

// fullAccount is true if a slot must be refused: its lease is alive, it is not taken yet, and
// either the limit is reached or tickets wait.
const fullAccount = `select
	exists (select 1 from session_lease where epoch = ?5 and not ` + staleLease + `)
	and not exists (select 1 from session_slot where account = ?4 and id = ?6 and epoch = ?5)
	and (` + hasLine + ` or (select count(*) from session_slot join session_lease using (epoch)
		where account = ?4 and not ` + staleLease + `) >= ?7)`

// Take refuses with a single read, so that refused callers never delay those who leave.
func (s *Sessions) Take(ctx context.Context, slot session.Slot, limit int) error {
	if limit > 0 {
		var full bool
		boot, now, stale := s.moment()
		if err := s.db.lookup.QueryRowContext(ctx, fullAccount, boot, stale, s.silent(now), slot.Account, slot.Epoch, slot.ID,
			limit).Scan(&full); err != nil {
			return storeError("look for a slot", err)
		}
		if full {
			return session.ErrNoSlot
		}
	}
	return s.fill(ctx, "take a slot", slot, func(ctx context.Context, tx *transaction, taken int) error {
		if limit > 0 && taken >= limit {
			return session.ErrNoSlot
		}
		boot, now, stale := s.moment()
		var line bool
		if err := tx.QueryRowContext(ctx, "select "+hasLine, boot, stale, s.silent(now), slot.Account).Scan(&line); err != nil {
			return err
		}
		if limit > 0 && line {
			return session.ErrNoSlot
		}
		return nil
	})
}

// fill takes a slot unless check, which receives the number of taken slots, fails. A slot that is
// already taken stays unchanged.
func (s *Sessions) fill(ctx context.Context, what string, slot session.Slot,
	check func(ctx context.Context, tx *transaction, taken int) error) error {
	return s.db.writeVolatile(ctx, what, func(ctx context.Context, tx *transaction) error {
		boot, _, stale := s.moment()
		if err := s.bury(ctx, tx, boot, stale); err != nil {
			return err
		}
		alive, own, taken, err := slotState(ctx, tx, slot)
		switch {
		case err != nil:
			return err
		case !alive:
			return session.ErrLeaseOver
		case own:
			return nil
		}
		if err := check(ctx, tx, taken); err != nil {
			return err
		}
		return insertSlot(ctx, tx, slot)
	})
}

// bury marks expired leases as dead and frees their slots.
func (s *Sessions) bury(ctx context.Context, tx *transaction, boot string, stale int64) error {
	buried, err := tx.ExecContext(ctx, "update session_lease set dead = 1 where not dead and "+staleLease, boot, stale)
	if err != nil {
		return err
	}
	if n, err := buried.RowsAffected(); err != nil || n == 0 {
		return err
	}
	_, err = tx.ExecContext(ctx, "delete from session_slot where epoch in (select epoch from session_lease where dead)")
	return err
}

// slotState reports whether a slot's lease is alive, whether the slot is taken, and how many slots
// its account has taken.
func slotState(ctx context.Context, tx *transaction, slot session.Slot) (alive, own bool, taken int, err error) {
	err = tx.QueryRowContext(ctx, `select
			exists (select 1 from session_lease where epoch = ?3 and not dead),
			exists (select 1 from session_slot where account = ?1 and id = ?2 and epoch = ?3),
			(select count(*) from session_slot where account = ?1)`,
		slot.Account, slot.ID, slot.Epoch).Scan(&alive, &own, &taken)
	return alive, own, taken, err
}

func insertSlot(ctx context.Context, tx *transaction, slot session.Slot) error {
	_, err := tx.ExecContext(ctx, "insert into session_slot (account, id, epoch) values (?, ?, ?)",
		slot.Account, slot.ID, slot.Epoch)
	return err
}

func (s *Sessions) Free(ctx context.Context, slot session.Slot) error {
	return s.db.writeVolatile(ctx, "free a slot", func(ctx context.Context, tx *transaction) error {
		_, err := tx.ExecContext(ctx, "delete from session_slot where account = ? and id = ? and epoch = ?",
			slot.Account, slot.ID, slot.Epoch)
		return err
	})
}

const activeSlots = `select count(*) from session_slot join session_lease using (epoch)
	where account = ?3 and not ` + staleLease

func (s *Sessions) Active(ctx context.Context, account string) (count int, err error) {
	boot, _, stale := s.moment()
	err = s.db.lookup.QueryRowContext(ctx, activeSlots, boot, stale, account).Scan(&count)
	return count, storeError("count sessions", err)
}
