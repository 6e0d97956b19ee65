package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"cutroom/shared/domain/session"
)

// waits is the condition that a ticket, joined with its lease, counts. Its parameters are the two
// of staleLease, then the seen_at of a ticket that has just become silent.
const waits = "not " + staleLease + " and seen_at > ?3"

// silent returns the seen_at of a ticket that has just become silent.
func (s *Sessions) silent(now int64) int64 { return now - session.GoneAfter.Milliseconds() }

func (s *Sessions) Join(ctx context.Context, ticket session.Slot, number int64, longest int) (drawn int64, err error) {
	err = s.db.writeVolatile(ctx, "join a line", func(ctx context.Context, tx *transaction) error {
		boot, now, stale := s.moment()
		var alive bool
		var waiting int
		if err := tx.QueryRowContext(ctx, `select
				exists (select 1 from session_lease where epoch = ?5 and not `+staleLease+`),
				(select count(*) from session_ticket join session_lease using (epoch)
					where account = ?4 and id <> ?6 and `+waits+`),
				coalesce((select number from session_ticket where account = ?4 and id = ?6 and epoch = ?5), ?7)`,
			boot, stale, s.silent(now), ticket.Account, ticket.Epoch, ticket.ID, number,
		).Scan(&alive, &waiting, &number); err != nil {
			return err
		}
		switch {
		case !alive:
			return session.ErrLeaseOver
		case waiting >= longest:
			return session.ErrNoSlot
		case number == 0:
			if err := tx.QueryRowContext(ctx, `insert into session_line (account, number) values (?, 1)
				on conflict do update set number = number + 1 returning number`, ticket.Account).Scan(&number); err != nil {
				return err
			}
		}
		drawn = number
		_, err := tx.ExecContext(ctx, `insert into session_ticket (account, id, epoch, number, seen_at)
			values (?, ?, ?, ?, ?) on conflict do update set epoch = excluded.epoch, seen_at = excluded.seen_at`,
			ticket.Account, ticket.ID, ticket.Epoch, number, now)
		return err
	})
	return drawn, err
}

// Look makes two reads, and one write per session.HereEvery.
func (s *Sessions) Look(ctx context.Context, account, epoch string) (line session.Line, err error) {
	boot, now, stale := s.moment()
	var last sql.NullInt64
	if err := s.db.lookup.QueryRowContext(ctx, "select min(seen_at) from session_ticket where account = ? and epoch = ?",
		account, epoch).Scan(&last); err != nil {
		return line, storeError("look at a line", err)
	}
	if last.Valid && last.Int64 <= now-session.HereEvery.Milliseconds() {
		if err := s.stay(ctx, account, epoch); err != nil {
			return line, err
		}
	}
	if err := s.db.lookup.QueryRowContext(ctx, activeSlots, boot, stale, account).Scan(&line.Taken); err != nil {
		return line, storeError("look at a line", err)
	}
	rows, err := s.db.reader.QueryContext(ctx, `select id, epoch from session_ticket join session_lease using (epoch)
		where account = ?4 and `+waits+" order by number, id", boot, stale, s.silent(now), account)
	if err != nil {
		return line, storeError("look at a line", err)
	}
	defer rows.Close()
	for rows.Next() {
		ticket := session.Slot{Account: account}
		if err := rows.Scan(&ticket.ID, &ticket.Epoch); err != nil {
			return line, storeError("look at a line", err)
		}
		line.Tickets = append(line.Tickets, ticket)
	}
	return line, storeError("look at a line", rows.Err())
}

// stay renews the tickets of an epoch in an account's queue. It removes silent tickets, including
// its own: others may already have passed them.
func (s *Sessions) stay(ctx context.Context, account, epoch string) error {
	return s.db.writeVolatile(ctx, "stay in a line", func(ctx context.Context, tx *transaction) error {
		boot, now, stale := s.moment()
		if _, err := tx.ExecContext(ctx, `delete from session_ticket where account = ?4 and
			(seen_at <= ?3 or epoch in (select epoch from session_lease where `+staleLease+"))",
			boot, stale, s.silent(now), account); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, "update session_ticket set seen_at = ? where account = ? and epoch = ?", now, account,
			epoch)
		return err
	})
}

func (s *Sessions) Redeem(ctx context.Context, ticket session.Slot, limit int) error {
	return s.fill(ctx, "redeem a ticket", ticket, func(ctx context.Context, tx *transaction, taken int) error {
		var number int64
		err := tx.QueryRowContext(ctx, "select number from session_ticket where account = ? and id = ? and epoch = ?",
			ticket.Account, ticket.ID, ticket.Epoch).Scan(&number)
		if errors.Is(err, sql.ErrNoRows) {
			return session.ErrNoTicket
		}
		if err != nil {
			return err
		}
		boot, now, stale := s.moment()
		var before int
		if err := tx.QueryRowContext(ctx, `select count(*) from session_ticket join session_lease using (epoch)
			where account = ?4 and (number, id) < (?5, ?6) and `+waits,
			boot, stale, s.silent(now), ticket.Account, number, ticket.ID).Scan(&before); err != nil {
			return err
		}
		if limit > 0 && before >= limit-taken {
			return session.ErrNoSlot
		}
		_, err = tx.ExecContext(ctx, "delete from session_ticket where account = ? and id = ?", ticket.Account, ticket.ID)
		return err
	})
}

func (s *Sessions) Leave(ctx context.Context, ticket session.Slot) error {
	return s.db.writeVolatile(ctx, "leave a line", func(ctx context.Context, tx *transaction) error {
		_, err := tx.ExecContext(ctx, "delete from session_ticket where account = ? and id = ? and epoch = ?",
			ticket.Account, ticket.ID, ticket.Epoch)
		return err
	})
}

func (s *Sessions) Waiting(ctx context.Context) (count int, err error) {
	boot, now, stale := s.moment()
	err = s.db.reader.QueryRowContext(ctx,
		"select count(*) from session_ticket join session_lease using (epoch) where "+waits,
		boot, stale, s.silent(now)).Scan(&count)
	return count, storeError("count those who wait", err)
}
