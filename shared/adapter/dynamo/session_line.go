package dynamo

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/session"
)

// An account's queue is in the item of its slots, so one condition of a write covers both: an
// attribute for each ticket, whose name has the epoch and the session and whose value is the
// number; their count; the last number that was drawn; and for each epoch the store's time of its
// last sign of life, in seconds since 1970. Tickets that no longer count stay until a process reads
// the line or needs their place.
const (
	ticketPrefix = "ticket/"
	herePrefix   = "here/"
	// waitingCount is the number of tickets, lastTicket the last number drawn.
	waitingCount = "waiting"
	lastTicket   = "last_ticket"
)

func ticketName(t session.Slot) string { return ticketPrefix + t.Epoch + "/" + t.ID }

// numbered is a ticket with its number.
type numbered struct {
	session.Slot
	number int64
}

// lineItem is the queue in an account's item.
type lineItem struct {
	// tickets are in order.
	tickets []numbered
	// here has the last sign of life of each epoch, 0 if it has tickets but no sign.
	here map[string]int64
}

func readLine(account string, i item) lineItem {
	line := lineItem{here: map[string]int64{}}
	for name, value := range i {
		if epoch, found := strings.CutPrefix(name, herePrefix); found {
			line.here[epoch] = numberOf(value)
		}
		if rest, found := strings.CutPrefix(name, ticketPrefix); found {
			epoch, id, _ := strings.Cut(rest, "/")
			line.tickets = append(line.tickets,
				numbered{session.Slot{ID: id, Account: account, Epoch: epoch}, numberOf(value)})
		}
	}
	for _, t := range line.tickets {
		// Another process may have just removed its sign.
		line.here[t.Epoch] += 0
	}
	slices.SortFunc(line.tickets, func(a, b numbered) int {
		return cmp.Or(cmp.Compare(a.number, b.number), strings.Compare(a.ID, b.ID))
	})
	return line
}

// counts reports whether the tickets of an epoch count.
func (l lineItem) counts(epoch string, leases map[string]lease) bool {
	found := leases[epoch]
	return found.alive() && time.Duration(found.now-l.here[epoch])*time.Second < session.GoneAfter
}

func (l lineItem) waiting(leases map[string]lease) (tickets []session.Slot) {
	for _, t := range l.tickets {
		if l.counts(t.Epoch, leases) {
			tickets = append(tickets, t.Slot)
		}
	}
	return tickets
}

// accountState is an account's item, with the leases that it names.
type accountState struct {
	account string
	slots   slots
	// open is the number of slots that the item says it has.
	open   int64
	line   lineItem
	leases map[string]lease
}

func (a accountState) taken() (count int) {
	for _, epoch := range a.slots {
		if a.leases[epoch].alive() {
			count++
		}
	}
	return count
}

func (a accountState) slotEpochs() []string {
	epochs := slices.Sorted(maps.Values(a.slots))
	return slices.Compact(epochs)
}

// state reads an account and the leases of this epoch and of all epochs that the account names, by
// two consistent reads. The role of the instances may read items only in batches.
func (s *Sessions) state(ctx context.Context, account, epoch string) (accountState, error) {
	found, err := readItems(ctx, s.client, s.table, []item{accountKey(account)})
	if err != nil {
		return accountState{}, err
	}
	var own item
	if len(found) > 0 {
		own = found[0]
	}
	return s.stateOf(ctx, account, epoch, own)
}

func (s *Sessions) stateOf(ctx context.Context, account, epoch string, own item) (a accountState, err error) {
	a = accountState{
		account: account, slots: readAccount(own), open: numberOf(own["open_slots"]), line: readLine(account, own),
	}
	epochs := slices.Concat([]string{epoch}, a.slotEpochs(), slices.Collect(maps.Keys(a.line.here)))
	slices.Sort(epochs)
	a.leases, err = s.leases(ctx, slices.Compact(epochs))
	return a, err
}

// Join makes one read of the lease and one write. If the queue is full, it first removes tickets
// that no longer count.
func (s *Sessions) Join(ctx context.Context, ticket session.Slot, had int64, longest int) (int64, error) {
	leases, err := s.leases(ctx, []string{ticket.Epoch})
	if err != nil {
		return 0, storeError("join a line", err)
	}
	for range takeTries {
		own := leases[ticket.Epoch]
		if !own.alive() {
			return 0, session.ErrLeaseOver
		}
		after, err := s.draw(ctx, ticket, had, longest, own.now)
		if err != nil {
			return 0, storeError("join a line", err)
		}
		if found, there := after[ticketName(ticket)]; there {
			return numberOf(found), nil
		}
		a, err := s.stateOf(ctx, ticket.Account, ticket.Epoch, after)
		if err != nil {
			return 0, storeError("join a line", err)
		}
		cleared, err := s.clearLine(ctx, ticket.Account, a)
		if err != nil {
			return 0, storeError("join a line", err)
		}
		if !cleared {
			return 0, session.ErrNoSlot
		}
		leases = a.leases
	}
	return 0, busy(nil)
}

// draw writes the ticket and returns the account's item after that. If the ticket exists or the
// queue is full, it writes nothing and returns the current item.
func (s *Sessions) draw(
	ctx context.Context, ticket session.Slot, had int64, longest int, now int64,
) (item, error) {
	names := map[string]string{
		"#ticket": ticketName(ticket), "#here": herePrefix + ticket.Epoch, "#waiting": waitingCount,
	}
	values := item{":now": number(now), ":one": number(1), ":longest": number(int64(longest))}
	set := "#ticket = :number"
	if had > 0 {
		values[":number"] = number(had)
	} else {
		names["#last"], values[":zero"] = lastTicket, number(0)
		set = "#ticket = if_not_exists(#last, :zero) + :one, #last = if_not_exists(#last, :zero) + :one"
	}
	found, _, err := tryUpdate(ctx, s.client, &dynamodb.UpdateItemInput{
		TableName: &s.table, Key: accountKey(ticket.Account),
		UpdateExpression: aws.String("SET " + set + ", #here = :now ADD #waiting :one"),
		ConditionExpression: aws.String(
			"attribute_not_exists(#ticket) AND (attribute_not_exists(#waiting) OR #waiting < :longest)"),
		ExpressionAttributeNames: names, ExpressionAttributeValues: values, ReturnValues: types.ReturnValueAllNew,
	})
	return found, err
}

// Look makes one read of the account, one of the leases, and a write per session.HereEvery. It
// removes tickets that no longer count.
func (s *Sessions) Look(ctx context.Context, account, epoch string) (session.Line, error) {
	a, err := s.state(ctx, account, epoch)
	if err != nil {
		return session.Line{}, storeError("look at a line", err)
	}
	if last, there := a.line.here[epoch]; there {
		now := a.leases[epoch].now
		if a.line.counts(epoch, a.leases) && time.Duration(now-last)*time.Second >= session.HereEvery {
			if err := s.stay(ctx, account, epoch, now); err != nil {
				return session.Line{}, storeError("stay in a line", err)
			}
			a.line.here[epoch] = now
		}
	}
	if _, err := s.clearLine(ctx, account, a); err != nil {
		return session.Line{}, storeError("look at a line", err)
	}
	return session.Line{Tickets: a.line.waiting(a.leases), Taken: a.taken()}, nil
}

// stay writes an epoch's sign of life. It does nothing if others have removed its tickets or a
// later sign exists.
func (s *Sessions) stay(ctx context.Context, account, epoch string, now int64) error {
	_, _, err := tryUpdate(ctx, s.client, &dynamodb.UpdateItemInput{
		TableName: &s.table, Key: accountKey(account), UpdateExpression: aws.String("SET #here = :now"),
		ConditionExpression:       aws.String("#here < :now"),
		ExpressionAttributeNames:  map[string]string{"#here": herePrefix + epoch},
		ExpressionAttributeValues: item{":now": number(now)},
	})
	return err
}

// clearLine removes the tickets and the signs of life of epochs that no longer count, unless they have
// given a sign since. It reports whether there were tickets to remove, even if another process removed
// them.
func (s *Sessions) clearLine(ctx context.Context, account string, a accountState) (cleared bool, err error) {
	for epoch, last := range a.line.here {
		if a.line.counts(epoch, a.leases) {
			continue
		}
		var names []string
		for _, t := range a.line.tickets {
			if t.Epoch == epoch {
				names = append(names, ticketName(t.Slot))
			}
		}
		cleared = cleared || len(names) > 0
		for len(names) > slotBatch {
			if err := s.removeTickets(ctx, account, epoch, last, names[:slotBatch], false); err != nil {
				return false, err
			}
			names = names[slotBatch:]
		}
		if err := s.removeTickets(ctx, account, epoch, last, names, true); err != nil {
			return false, err
		}
	}
	return cleared, nil
}

// removeTickets removes tickets of an epoch whose last sign of life has not changed: all of them, or none
// if one is gone. The last call for an epoch removes the sign too.
func (s *Sessions) removeTickets(
	ctx context.Context, account, epoch string, seen int64, tickets []string, last bool,
) error {
	names := map[string]string{"#here": herePrefix + epoch}
	values := item{":seen": number(seen)}
	condition, update := "#here = :seen", ""
	if seen == 0 {
		condition = "attribute_not_exists(#here)"
		delete(values, ":seen")
	}
	var removed []string
	if last {
		removed = append(removed, "#here")
	}
	for i, ticket := range tickets {
		name := "#ticket" + string(rune('a'+i/26)) + string(rune('a'+i%26))
		names[name] = ticket
		removed = append(removed, name)
		condition += " AND attribute_exists(" + name + ")"
	}
	if len(tickets) > 0 {
		names["#waiting"], values[":less"] = waitingCount, number(-int64(len(tickets)))
		update = " ADD #waiting :less"
	}
	_, _, err := tryUpdate(ctx, s.client, &dynamodb.UpdateItemInput{
		TableName: &s.table, Key: accountKey(account),
		UpdateExpression:    aws.String("REMOVE " + strings.Join(removed, ", ") + update),
		ConditionExpression: aws.String(condition), ExpressionAttributeNames: names, ExpressionAttributeValues: values,
	})
	return err
}

// Redeem makes two reads and one transaction. The turn cannot be lost between them: the tickets
// before it leave or are served, and each served ticket needs one of the slots that were free.
func (s *Sessions) Redeem(ctx context.Context, ticket session.Slot, limit int) error {
	if limit <= 0 {
		limit = math.MaxInt
	}
	for range takeTries {
		a, err := s.state(ctx, ticket.Account, ticket.Epoch)
		if err != nil {
			return storeError("redeem a ticket", err)
		}
		waiting := a.line.waiting(a.leases)
		before := slices.Index(waiting, ticket)
		switch {
		case a.slots[ticket.ID] == ticket.Epoch:
			return nil
		case !a.leases[ticket.Epoch].alive():
			return session.ErrLeaseOver
		case before < 0:
			return session.ErrNoTicket
		case before >= limit-a.taken():
			return session.ErrNoSlot
		}
		if a.open >= slotsWithin(limit) {
			if _, err := s.freeDead(ctx, a); err != nil {
				return storeError("free the slots of dead leases", err)
			}
			if _, err := s.correct(ctx, a); err != nil {
				return storeError("redeem a ticket", err)
			}
		}
		err = transact(ctx, s.client, []types.TransactWriteItem{s.aliveCheck(ticket.Epoch), s.redeemWrite(ticket, limit)})
		r := refused(err)
		switch {
		case r == nil:
			return storeError("redeem a ticket", err)
		case r.failed[0]:
			return session.ErrLeaseOver
		}
	}
	return fault.New(fault.Unavailable, "The sessions are busy. Try again.")
}

func (s *Sessions) redeemWrite(ticket session.Slot, limit int) types.TransactWriteItem {
	return types.TransactWriteItem{Update: &types.Update{
		TableName: &s.table, Key: accountKey(ticket.Account),
		UpdateExpression: aws.String("SET #slot = :epoch REMOVE #ticket ADD open_slots :one, #waiting :less"),
		ConditionExpression: aws.String("attribute_not_exists(#slot) AND attribute_exists(#ticket)" +
			" AND (attribute_not_exists(open_slots) OR open_slots < :limit)"),
		ExpressionAttributeNames: map[string]string{
			"#slot": slotPrefix + ticket.ID, "#ticket": ticketName(ticket), "#waiting": waitingCount,
		},
		ExpressionAttributeValues: item{
			":epoch": text(ticket.Epoch), ":one": number(1), ":less": number(-1),
			":limit": number(slotsWithin(limit)),
		},
	}}
}

// Leave is one write.
func (s *Sessions) Leave(ctx context.Context, ticket session.Slot) error {
	_, _, err := tryUpdate(ctx, s.client, &dynamodb.UpdateItemInput{
		TableName: &s.table, Key: accountKey(ticket.Account),
		UpdateExpression:          aws.String("REMOVE #ticket ADD #waiting :less"),
		ConditionExpression:       aws.String("attribute_exists(#ticket)"),
		ExpressionAttributeNames:  map[string]string{"#ticket": ticketName(ticket), "#waiting": waitingCount},
		ExpressionAttributeValues: item{":less": number(-1)},
	})
	return storeError("leave a line", err)
}
