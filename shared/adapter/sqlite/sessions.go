package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"cutroom/shared/domain/session"
)

// Machine is the clock for leases. It cannot be set, and all processes that use the file share it.
type Machine interface {
	// Now returns the time since the machine's start.
	Now() time.Duration
	// Boot identifies the current boot of the machine. Leases from another boot have ended.
	Boot() string
}

// Sessions implements session.Store for the processes of one machine. Its records are useless after
// a reboot, so opening and closing sessions does not wait for the disk.
type Sessions struct {
	db      *DB
	machine Machine
}

var _ session.Store = (*Sessions)(nil)

func (db *DB) Sessions(machine Machine) *Sessions { return &Sessions{db, machine} }

// deadLeaseAge is longer than any call that uses the lease's epoch.
const deadLeaseAge = time.Hour

// staleLease is true if a lease has ended, even if it has not been marked as dead.
const staleLease = "(dead or boot <> ?1 or renewed_at <= ?2)"

// moment returns the current boot and time, and the last renewal time of a lease that ends now (stale). Times are in
// milliseconds.
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
		_, err := tx.ExecContext(ctx, "delete from session_slot where epoch = ?", epoch)
		return err
	})
}

type slotState struct {
	// own means that this session already has the slot.
	alive, own bool
	taken      int
	queue      session.Queue
	now        time.Duration
}

func (s *Sessions) slotState(ctx context.Context, q querier, slot session.Slot) (st slotState, err error) {
	boot, now, stale := s.moment()
	st.now = time.Duration(now) * time.Millisecond
	var queue string
	if err := q.QueryRowContext(ctx, `select
			exists (select 1 from session_lease where epoch = ?5 and not `+staleLease+`),
			exists (select 1 from session_slot where account = ?3 and id = ?4 and epoch = ?5),
			(`+activeSlots+`), (`+queueOf+`)`,
		boot, stale, slot.Account, slot.ID, slot.Epoch).Scan(&st.alive, &st.own, &st.taken, &queue); err != nil {
		return st, err
	}
	st.queue, err = session.ParseQueue(queue)
	return st, err
}

func (st slotState) admits(id string, limit int) bool {
	return limit <= 0 || st.own || session.Admits(st.queue.Tickets(st.now), id, limit-st.taken)
}

// Take rejects a session after a single read, so that rejected callers do not delay the writes of
// clients that are leaving.
//
// Errors: fault.Limited if no slot is free or another ticket is next; fault.Conflict if the slot's
// own epoch is dead or unknown.
func (s *Sessions) Take(ctx context.Context, slot session.Slot, limit int) error {
	st, err := s.slotState(ctx, s.db.lookup, slot)
	if err != nil {
		return storeError("look up a slot", err)
	}
	if st.alive && !st.admits(slot.ID, limit) {
		return session.ErrNoSlot
	}
	return s.db.writeVolatile(ctx, "take a slot", func(ctx context.Context, tx *transaction) error {
		if err := s.bury(ctx, tx); err != nil {
			return err
		}
		st, err := s.slotState(ctx, tx, slot)
		switch {
		case err != nil:
			return err
		case !st.alive:
			return session.ErrLeaseOver
		case st.own:
			return nil
		case !st.admits(slot.ID, limit):
			return session.ErrNoSlot
		}
		if st.queue.Remove(slot.ID) {
			if err := s.writeQueue(ctx, tx, slot.Account, st.queue); err != nil {
				return err
			}
		}
		_, err = tx.ExecContext(ctx, "insert into session_slot (account, id, epoch) values (?, ?, ?)",
			slot.Account, slot.ID, slot.Epoch)
		return err
	})
}

// bury marks stale leases as dead and frees their slots.
func (s *Sessions) bury(ctx context.Context, tx *transaction) error {
	boot, _, stale := s.moment()
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
