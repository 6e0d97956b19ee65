package sqlite

import (
	"context"

	"cutroom/shared/domain/session"
)

// A queue from an earlier boot counts as empty.
const queueOf = "select coalesce((select tickets from session_queue where account = ?3 and boot = ?1), '')"

func (s *Sessions) RenewTickets(
	ctx context.Context, account, holder string, own []session.Ticket,
) (tickets []session.Ticket, taken int, err error) {
	boot, _, stale := s.moment()
	renew := func(ctx context.Context, q querier) (queue session.Queue, changed bool, err error) {
		var text string
		if err := q.QueryRowContext(ctx, "select ("+queueOf+"), ("+activeSlots+")", boot, stale, account).
			Scan(&text, &taken); err != nil {
			return nil, false, err
		}
		if queue, err = session.ParseQueue(text); err != nil {
			return nil, false, err
		}
		now := s.machine.Now()
		changed = queue.Renew(holder, own, now)
		tickets = queue.Tickets(now)
		return queue, changed, nil
	}
	if _, changed, err := renew(ctx, s.db.lookup); err != nil || !changed {
		return tickets, taken, storeError("renew tickets", err)
	}
	err = s.db.writeVolatile(ctx, "renew tickets", func(ctx context.Context, tx *transaction) error {
		queue, changed, err := renew(ctx, tx)
		if err != nil || !changed {
			return err
		}
		return s.writeQueue(ctx, tx, account, queue)
	})
	return tickets, taken, err
}

func (s *Sessions) writeQueue(ctx context.Context, tx *transaction, account string, queue session.Queue) error {
	_, err := tx.ExecContext(ctx, `insert into session_queue (account, boot, tickets) values (?, ?, ?)
		on conflict do update set boot = excluded.boot, tickets = excluded.tickets`,
		account, s.machine.Boot(), queue.String())
	return err
}

func (s *Sessions) Waiting(ctx context.Context) (count int, err error) {
	err = eachRow(ctx, s.db.reader, func(r row) error {
		var text string
		if err := r.Scan(&text); err != nil {
			return err
		}
		queue, err := session.ParseQueue(text)
		count += len(queue.Tickets(s.machine.Now()))
		return err
	}, "select tickets from session_queue where boot = ?", s.machine.Boot())
	return count, storeError("count waiting clients", err)
}
