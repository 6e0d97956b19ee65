package dynamo

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"cutroom/shared/domain/session"
)

// Room is moved to a part together with a slot that is taken there (growth), for a part of what the
// limit leaves, so that few slots need a move. It comes back where much of it is left when a slot
// is freed, and where a session would be refused otherwise: then all that is left in parts, after
// slots of dead leases are freed.

// makeRoom is called when a slot could not be taken at a place. It returns where to try next,
// or that it has taken the slot.
//
// Errors: fault.Limited if no slot is free, or others wait; fault.Conflict if the epoch is dead.
func (s *Sessions) makeRoom(ctx context.Context, slot session.Slot, limit, at int) (next int, taken bool, err error) {
	own, err := s.readOwn(ctx, slot.Account)
	if err != nil {
		return at, false, err
	}
	head, most := readHead(own), capOf(limit)
	if limit > 0 && head.waiting > 0 {
		return at, false, s.freeSome(ctx, slot, own)
	}
	if !s.isLarge(limit) && head.open < most {
		return atAccount, false, nil
	}
	if s.isLarge(limit) {
		if raised, err := s.raise(ctx, slot.Account, head, most); raised || err != nil {
			return at, false, err
		}
		g := growth{slot: slot, limit: limit, head: head, at: at, parts: max(head.parts, s.partsOf(limit))}
		if head.waiting > 0 {
			g.parts = head.parts // who waits may have closed these
		}
		if g.parts == 0 {
			taken, err = s.takeDespiteLine(ctx, slot)
			return at, taken, err
		}
		if g.at == atAccount || g.at > g.parts {
			g.at = firstPart(slot.ID, g.parts)
		}
		free := most - head.open
		if head.parts > 0 {
			free = min(most, head.most) - head.open
		}
		if free > 0 {
			g.amount = max(min(free/int64(2*g.parts), s.spread.block), 1)
			if head.waiting > 0 {
				g.amount = 1
			}
			taken, err = s.grow(ctx, g)
			if errors.Is(err, errFull) {
				next, err = s.besideFull(ctx, slot, own)
				return next, false, err
			}
			return g.at, taken, err
		}
		at = g.at
	}
	return s.findRoom(ctx, slot, limit, at, own)
}

// takeDespiteLine takes a slot without a limit in the item of an account that has no parts, and
// gets none while others wait.
//
// Errors: fault.Conflict if the epoch is dead.
func (s *Sessions) takeDespiteLine(ctx context.Context, slot session.Slot) (taken bool, err error) {
	take := s.takeWrite(atAccount, slot, 0)
	take.Update.ExpressionAttributeValues[":limit"] = number(mostSlots)
	err = transact(ctx, s.client, []types.TransactWriteItem{s.aliveCheck(slot.Epoch), take})
	switch r := refused(err); {
	case r == nil:
		return err == nil, err
	case r.failed[0]:
		return false, session.ErrLeaseOver
	}
	return false, nil
}

// errFull says that a part has all the room that an item takes.
var errFull = errors.New("the part is full")

// besideFull frees slots of dead leases, of which an account that is never refused would get
// ever more. If there are none it returns the part with the least room.
//
// Errors: fault.Limited if all parts are full.
func (s *Sessions) besideFull(ctx context.Context, slot session.Slot, own item) (next int, err error) {
	a, err := s.stateOf(ctx, slot.Account, slot.Epoch, own)
	if err != nil {
		return atAccount, err
	}
	next = 1
	for at := range a.items {
		if at > 1 && a.items[at].room < a.items[next].room {
			next = at
		}
	}
	freed, err := s.freeDead(ctx, a)
	if err == nil && !freed && (len(a.items) == 1 || a.items[next].room >= s.spread.full) {
		err = session.ErrNoSlot
	}
	return next, err
}

// growth is a move of room to a part and the slot that is taken there.
type growth struct {
	slot  session.Slot
	limit int
	// at is the part, and parts how many the account has then.
	at, parts int
	// amount is for how many slots room is moved; none where the part has some.
	amount int64
	// head is the account as it was read.
	head slotHead
}

// grow moves room to a part and takes a slot there, unless the account has changed. If nobody
// waits it opens the part.
//
// Errors: errFull; fault.Conflict if the epoch is dead.
func (s *Sessions) grow(ctx context.Context, g growth) (taken bool, err error) {
	s.note(g.slot.ID, g.at, g.limit)
	// The lower of the two is what the account's open slots are within.
	most := capOf(g.limit)
	if g.head.parts > 0 {
		most = min(most, g.head.most)
	}
	own, part := s.growOwn(g, most), s.growPart(g, most)
	err = transact(ctx, s.client, []types.TransactWriteItem{s.aliveCheck(g.slot.Epoch), {Update: own}, {Update: part}})
	r := refused(err)
	switch {
	case r == nil:
		if err == nil {
			s.noteParts(g.slot.Account)
		}
		return err == nil, err
	case r.failed[0]:
		return false, session.ErrLeaseOver
	}
	switch there := readSlots(r.items[2]); {
	case there.slots[g.slot.ID] == g.slot.Epoch:
		return true, nil
	case g.amount > 0 && there.room >= s.spread.full:
		return false, errFull
	}
	return false, nil
}

// growOwn returns the write of a growth to the account's own item.
func (s *Sessions) growOwn(g growth, most int64) *types.Update {
	names := map[string]string{}
	values := item{
		":amount": number(g.amount), ":most": number(most), ":free": number(most - g.amount),
		":parts": number(int64(g.parts)),
	}
	update := "SET most_slots = :most, slot_parts = :parts"
	condition := "attribute_not_exists(raising_to) AND (attribute_not_exists(open_slots) OR open_slots <= :free)"
	if g.amount == 0 {
		// What is taken was moved before.
		update, condition = "SET slot_parts = :parts", "slot_parts = :parts"
		delete(values, ":most")
		delete(values, ":free")
	} else if g.head.parts == 0 {
		condition += " AND attribute_not_exists(slot_parts)"
	} else {
		values[":seen"], values[":had"] = number(g.head.most), number(int64(g.head.parts))
		condition += " AND most_slots = :seen AND slot_parts = :had"
	}
	add := " ADD open_slots :amount"
	if g.head.waiting <= 0 {
		names["#waiting"], values[":one"] = waitingCount, number(1)
		condition += " AND (attribute_not_exists(#waiting) OR #waiting < :one)"
		update += " REMOVE line_closed"
		add += ", reopen_count :one"
	}
	u := &types.Update{
		TableName: &s.table, Key: accountKey(g.slot.Account), UpdateExpression: aws.String(update + add),
		ConditionExpression: &condition, ExpressionAttributeValues: values,
	}
	if len(names) > 0 {
		u.ExpressionAttributeNames = names
	}
	return u
}

// growPart returns the write of a growth to the part.
func (s *Sessions) growPart(g growth, most int64) *types.Update {
	values := item{":epoch": text(g.slot.Epoch), ":one": number(1), ":amount": number(g.amount), ":most": number(most)}
	update, condition := "SET #slot = :epoch, most_slots = :most", "attribute_not_exists(#slot)"
	if g.amount == 0 {
		update, condition = "SET #slot = :epoch", condition+" AND open_slots < slot_room AND most_slots <= :most"
		values[":most"] = number(capOf(g.limit))
	} else {
		condition += " AND (attribute_not_exists(slot_room) OR slot_room < :full)"
		values[":full"] = number(s.spread.full)
	}
	if g.head.waiting <= 0 {
		update += " REMOVE line_closed"
	}
	return &types.Update{
		TableName: &s.table, Key: slotsKey(g.slot.Account, g.at),
		UpdateExpression:                    aws.String(update + " ADD open_slots :one, slot_room :amount"),
		ConditionExpression:                 &condition,
		ExpressionAttributeNames:            map[string]string{"#slot": slotPrefix + g.slot.ID},
		ExpressionAttributeValues:           values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
}

// findRoom looks for room in all parts of an account that has none itself, as it was read.
func (s *Sessions) findRoom(
	ctx context.Context, slot session.Slot, limit, at int, own item,
) (next int, taken bool, err error) {
	a, err := s.stateOf(ctx, slot.Account, slot.Epoch, own)
	if err != nil {
		return at, false, err
	}
	if at, found := a.placeOf(slot); found {
		s.note(slot.ID, at, limit)
		return at, true, nil
	}
	if spare := a.spareFor(limit, s.isLarge(limit)); len(spare) > 0 {
		next = spare[hashOf(slot.ID)%uint32(len(spare))]
		if limit > 0 && a.items[next].closed {
			taken, err = s.grow(ctx, growth{slot: slot, limit: limit, at: next, parts: a.head.parts, head: a.head})
		}
		return next, taken, err
	}
	freed, err := s.freeSpare(ctx, a)
	if freed || err != nil {
		return at, false, err
	}
	return at, false, s.stillFull(ctx, a)
}

// stillFull looks again at an account that was found full: meanwhile room may have been moved
// from parts that were not read yet.
//
// Errors: fault.Limited if it is full.
func (s *Sessions) stillFull(ctx context.Context, a accountState) error {
	again, err := s.readOwn(ctx, a.account)
	if now := readHead(again); err == nil && now.drains == a.head.drains && now.open >= a.head.open {
		err = session.ErrNoSlot
	}
	return err
}

// spareFor returns the parts in which a slot under the limit can be taken.
func (a accountState) spareFor(limit int, large bool) (spare []int) {
	for at := 1; at < len(a.items) && large; at++ {
		if a.items[at].spare() > 0 && a.items[at].most <= capOf(limit) {
			spare = append(spare, at)
		}
	}
	return spare
}

// freeSpare frees the slots of dead leases, or else moves all room that is left in parts back to
// the account. It reports whether there was any of either, whoever freed it.
func (s *Sessions) freeSpare(ctx context.Context, a accountState) (freed bool, err error) {
	if freed, err = s.freeDead(ctx, a); freed || err != nil {
		return freed, err
	}
	for at := 1; at < len(a.items); at++ {
		if i := a.items[at]; i.spare() > 0 {
			freed = true
			if err := s.drain(ctx, a.account, at, i, i.spare()); err != nil {
				return freed, err
			}
		}
	}
	return freed, nil
}

// drain moves room from a part, as it was read, back to the account, unless it has changed.
func (s *Sessions) drain(ctx context.Context, account string, at int, i slotItem, amount int64) error {
	less := number(-amount)
	err := transact(ctx, s.client, []types.TransactWriteItem{
		{Update: &types.Update{
			TableName: &s.table, Key: accountKey(account),
			UpdateExpression:          aws.String("ADD open_slots :less, drain_count :one"),
			ExpressionAttributeValues: item{":less": less, ":one": number(1)},
		}},
		{Update: &types.Update{
			TableName: &s.table, Key: slotsKey(account, at), UpdateExpression: aws.String("ADD slot_room :less"),
			ConditionExpression:       aws.String("slot_room = :room AND open_slots <= :left"),
			ExpressionAttributeValues: item{":less": less, ":room": number(i.room), ":left": number(i.room - amount)},
		}},
	})
	if refused(err) != nil {
		return nil
	}
	return err
}

// giveBack moves room from a part in which a slot was freed back to the account, if much of it
// is left there.
func (s *Sessions) giveBack(ctx context.Context, account string, at int, part item) error {
	i := readSlots(part)
	if i.spare() < 2*s.spread.block {
		return nil
	}
	return s.drain(ctx, account, at, i, i.spare()-s.spread.block)
}

// freeElsewhere frees a slot that was not where it was expected, whose item is that. It returns
// where it was, and the item as it is then.
func (s *Sessions) freeElsewhere(
	ctx context.Context, slot session.Slot, not int, there item,
) (at int, after item, err error) {
	if not != atAccount {
		if there, err = s.readOwn(ctx, slot.Account); err != nil {
			return not, nil, err
		}
	}
	items, err := s.itemsOf(ctx, slot.Account, there)
	if err != nil {
		return not, nil, err
	}
	found, isThere := accountState{items: items}.placeOf(slot)
	if !isThere {
		return atAccount, nil, nil
	}
	after, _, err = s.remove(ctx, slot.Account, found, slot.Epoch, []string{slot.ID})
	return found, after, err
}
