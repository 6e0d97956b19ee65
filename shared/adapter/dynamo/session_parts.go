package dynamo

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"cutroom/shared/domain/session"
)

// Each write of an item costs as much as the item is large, and one partition takes a thousand
// units a second. An account whose limit is high, or that has none, therefore has parts once it
// has some open slots. A part is an item with slots, and with room for so many (slot_room). All
// room of parts is among the open slots of the account's own item, so that one number remains
// what the limit is compared with, also by earlier versions, which know no parts. Room is moved
// to a part by the transaction that takes a slot there, for some more slots. Who finds none at
// the account looks for it in all parts before a session is refused.
//
// Keys of one account may have different limits, and limits change. So a part also has what
// the open slots of the account may have become (most_slots), and only those take room there
// whose limit is no lower. The account's number of that name bounds its open slots. It is
// lowered by whoever moves room under a lower limit that they fit in. Before it is raised, that
// of each part is (raise), during which no room is moved.
//
// While clients wait in the account's line, its parts are closed to who comes. Who joins closes
// them all, unless the account says that they are (line_closed). A part is opened by the
// transaction that takes a slot there on the condition that nobody waits, which is noted
// (reopen_count): so nobody says that all are closed who has begun to close them before.

// slotSpread says which accounts have parts.
type slotSpread struct {
	// above is the highest limit of an account that has none, and from how many slots are in
	// the account's own item before there are parts.
	above, from int
	// each is for how many slots of the limit there is a part, and parts how many there are at
	// most.
	each, parts int
	// block is for how many slots room is moved at once at most, and full for how many a part
	// has room at most.
	block, full int64
}

var usualSlotSpread = slotSpread{above: 250, from: 50, each: 64, parts: 64, block: 32, full: mostSlots}

const (
	// atAccount is the place of a slot that is in the account's own item; those in parts are
	// the numbers of the parts, from 1.
	atAccount = 0
	// noLimit stands for the limit of an account without one.
	noLimit = int64(1) << 50
	// writesAtOnce is how many parts are written at the same time.
	writesAtOnce = 8
)

// slotItem is what an account's item or a part has of slots. In the account's own, open includes
// the room of all parts, and it has no room itself.
type slotItem struct {
	slots            slots
	open, room, most int64
	closed           bool
}

func readSlots(i item) slotItem {
	return slotItem{
		slots: readAccount(i), open: numberOf(i["open_slots"]), room: numberOf(i["slot_room"]),
		most: numberOf(i["most_slots"]), closed: i["line_closed"] != nil,
	}
}

// spare returns for how many more slots the part has room.
func (i slotItem) spare() int64 { return i.room - i.open }

// slotHead is what an account's own item says of it and its parts.
type slotHead struct {
	open, most, waiting int64
	// parts is how many there are; it never decreases.
	parts int
	// raising is what most is being raised to, by the raise of that number.
	raising, raises int64
	// drains counts how often room was moved back from a part.
	drains, reopens int64
	closed          bool
}

func readHead(i item) slotHead {
	return slotHead{
		open: numberOf(i["open_slots"]), most: numberOf(i["most_slots"]), waiting: numberOf(i[waitingCount]),
		parts: int(numberOf(i["slot_parts"])), raising: numberOf(i["raising_to"]), raises: numberOf(i["raise_count"]),
		drains: numberOf(i["drain_count"]), reopens: numberOf(i["reopen_count"]), closed: i["line_closed"] != nil,
	}
}

// isLarge reports whether an account with the limit may have parts.
func (s *Sessions) isLarge(limit int) bool { return limit <= 0 || limit > s.spread.above }

// partsOf returns how many parts an account with the limit has at least.
func (s *Sessions) partsOf(limit int) int {
	if limit <= 0 {
		return s.spread.parts
	}
	return min((limit-1)/s.spread.each+1, s.spread.parts)
}

func capOf(limit int) int64 {
	if limit <= 0 {
		return noLimit
	}
	return min(int64(limit), noLimit)
}

// firstPart returns the part of so many in which a slot is tried first.
func firstPart(id string, parts int) int { return 1 + int(hashOf(id)%uint32(parts)) }

func hashOf(id string) uint32 {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(id)) // a hash never fails
	return hash.Sum32()
}

// slotsKey returns the key of an account's own item or of a part.
func slotsKey(account string, at int) item {
	if at == atAccount {
		return accountKey(account)
	}
	// No account has the character in its name.
	return accountKey(fmt.Sprintf("%s#%d", account, at))
}

// startingPlace returns where a slot is tried first: where that was done before, so that a
// repetition finds what the first call has written.
func (s *Sessions) startingPlace(slot session.Slot, limit int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at, known := s.places[slot.ID]; known {
		return at
	}
	if s.isLarge(limit) && s.parted[slot.Account] {
		return firstPart(slot.ID, s.partsOf(limit))
	}
	return atAccount
}

// note remembers where a slot is tried.
func (s *Sessions) note(id string, at, limit int) {
	if at == atAccount && !s.isLarge(limit) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.places[id] = at
}

func (s *Sessions) forget(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.places, id)
}

func (s *Sessions) placeOf(id string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.places[id]
}

// noteParts remembers that an account has parts.
func (s *Sessions) noteParts(account string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parted[account] = true
}

// itemsOf returns what an account's own item has of slots, and its parts, which are read.
func (s *Sessions) itemsOf(ctx context.Context, account string, own item) ([]slotItem, error) {
	parts := readHead(own).parts
	items := make([]slotItem, 1+parts)
	items[atAccount] = readSlots(own)
	if parts == 0 {
		return items, nil
	}
	s.noteParts(account)
	keys, places := make([]item, parts), map[string]int{}
	for at := 1; at <= parts; at++ {
		keys[at-1] = slotsKey(account, at)
		places[(&reader{item: keys[at-1]}).text("id")] = at
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	found, err := readItems(ctx, s.client, s.table, keys)
	for _, i := range found {
		items[places[(&reader{item: i}).text("id")]] = readSlots(i)
	}
	return items, err
}

// takePart returns the write that takes a slot where a part has room.
func (s *Sessions) takePart(at int, slot session.Slot, limit int) types.TransactWriteItem {
	condition := "attribute_not_exists(#slot) AND open_slots < slot_room AND most_slots <= :limit"
	if limit > 0 {
		condition += " AND attribute_not_exists(line_closed)"
	}
	return types.TransactWriteItem{Update: &types.Update{
		TableName: &s.table, Key: slotsKey(slot.Account, at),
		UpdateExpression: aws.String("SET #slot = :epoch ADD open_slots :one"), ConditionExpression: &condition,
		ExpressionAttributeNames: map[string]string{"#slot": slotPrefix + slot.ID},
		ExpressionAttributeValues: item{
			":epoch": text(slot.Epoch), ":one": number(1), ":limit": number(capOf(limit)),
		},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}}
}

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

// raise raises what the open slots of an account may become to most, if they have reached it;
// or it ends a raise that another has begun. It reports whether there was something to do.
func (s *Sessions) raise(ctx context.Context, account string, head slotHead, most int64) (bool, error) {
	switch {
	case head.raising > 0:
	case head.parts > 0 && head.open >= head.most && head.most < most:
		after, err := s.writeOwn(ctx, account, "SET raising_to = :to ADD raise_count :one",
			"most_slots = :seen AND attribute_not_exists(raising_to)",
			item{":to": number(most), ":one": number(1), ":seen": number(head.most)})
		if err != nil || after == nil {
			return true, err
		}
		head = readHead(after)
	default:
		return false, nil
	}
	err := s.eachPart(ctx, account, head.parts, "SET most_slots = :to",
		aws.String("attribute_not_exists(most_slots) OR most_slots < :to"), item{":to": number(head.raising)})
	if err != nil {
		return true, err
	}
	_, err = s.writeOwn(ctx, account, "SET most_slots = :to REMOVE raising_to", "raising_to = :to AND raise_count = :no",
		item{":to": number(head.raising), ":no": number(head.raises)})
	return true, err
}

// closeParts closes the parts of an account in whose line somebody waits, unless they are.
func (s *Sessions) closeParts(ctx context.Context, account string, head slotHead) error {
	if head.parts == 0 || head.closed {
		return nil
	}
	if err := s.eachPart(ctx, account, head.parts, "SET line_closed = :one", nil, item{":one": number(1)}); err != nil {
		return err
	}
	condition, values := "attribute_not_exists(reopen_count)", item{":one": number(1)}
	if head.reopens > 0 {
		condition, values[":seen"] = "reopen_count = :seen", number(head.reopens)
	}
	_, err := s.writeOwn(ctx, account, "SET line_closed = :one", condition, values)
	return err
}

// writeOwn writes the account's own item, and returns it, or nil if the condition is false.
func (s *Sessions) writeOwn(ctx context.Context, account, update, condition string, values item) (item, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	written, err := s.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &s.table, Key: accountKey(account), UpdateExpression: &update, ConditionExpression: &condition,
		ExpressionAttributeValues: values, ReturnValues: types.ReturnValueAllNew,
	})
	if _, failed := conditionFailed(err); failed {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return written.Attributes, nil
}

// eachPart makes the same write to all parts for which the condition is true.
func (s *Sessions) eachPart(
	ctx context.Context, account string, parts int, update string, condition *string, values item,
) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(writesAtOnce)
	for at := 1; at <= parts; at++ {
		all.Go(func() error {
			_, err := s.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
				TableName: &s.table, Key: slotsKey(account, at), UpdateExpression: &update, ConditionExpression: condition,
				ExpressionAttributeValues: values,
			})
			if _, failed := conditionFailed(err); failed {
				return nil
			}
			return err
		})
	}
	return all.Wait()
}

// redeemSpread takes a slot of an account with parts for a ticket whose turn it is. It reports
// whether it has; otherwise the account has changed, and is to be read again.
//
// Errors: fault.Limited if there is no slot after all; fault.Conflict if the epoch is dead.
func (s *Sessions) redeemSpread(ctx context.Context, ticket session.Slot, limit int, a accountState) (bool, error) {
	large, most := s.isLarge(limit), capOf(limit)
	if large {
		if raised, err := s.raise(ctx, ticket.Account, a.head, most); raised || err != nil {
			return false, err
		}
		most = min(most, a.head.most)
	}
	writes := []types.TransactWriteItem{s.aliveCheck(ticket.Epoch)}
	at := atAccount
	switch spare := a.spareFor(limit, large); {
	case a.head.open < most && !large:
		writes = append(writes, s.redeemWrite(ticket, limit))
	case a.head.open < most:
		at = firstPart(ticket.ID, a.head.parts)
		g := growth{slot: ticket, limit: limit, at: at, parts: a.head.parts, amount: 1, head: a.head}
		part := types.TransactWriteItem{Update: s.growPart(g, most)}
		writes = append(writes, s.redeemMove(ticket, most, a.head), part)
	case len(spare) > 0:
		at = spare[hashOf(ticket.ID)%uint32(len(spare))]
		// That it is closed is no matter.
		writes = append(writes, s.leaveWrite(ticket), s.takePart(at, ticket, 0))
		writes[2].Update.ExpressionAttributeValues[":limit"] = number(capOf(limit))
	default:
		freed, err := s.freeSpare(ctx, a)
		if err == nil && !freed {
			err = s.stillFull(ctx, a)
		}
		return false, err
	}
	s.note(ticket.ID, at, limit)
	err := transact(ctx, s.client, writes)
	switch r := refused(err); {
	case r == nil:
		return err == nil, err
	case r.failed[0]:
		return false, session.ErrLeaseOver
	}
	return false, nil
}

// redeemMove returns the write that takes a ticket out of its line and moves room for one slot.
func (s *Sessions) redeemMove(ticket session.Slot, most int64, head slotHead) types.TransactWriteItem {
	w := s.leaveWrite(ticket)
	*w.Update.UpdateExpression += ", open_slots :one SET most_slots = :most"
	*w.Update.ConditionExpression += " AND open_slots < :most AND attribute_not_exists(raising_to) AND most_slots = :seen" +
		" AND slot_parts = :parts"
	values := w.Update.ExpressionAttributeValues
	values[":one"], values[":most"], values[":seen"] = number(1), number(most), number(head.most)
	values[":parts"] = number(int64(head.parts))
	return w
}

// leaveWrite returns the write that takes a ticket out of its line.
func (s *Sessions) leaveWrite(ticket session.Slot) types.TransactWriteItem {
	return types.TransactWriteItem{Update: &types.Update{
		TableName: &s.table, Key: accountKey(ticket.Account),
		UpdateExpression:          aws.String("REMOVE #ticket ADD #waiting :less"),
		ConditionExpression:       aws.String("attribute_exists(#ticket)"),
		ExpressionAttributeNames:  map[string]string{"#ticket": ticketName(ticket), "#waiting": waitingCount},
		ExpressionAttributeValues: item{":less": number(-1)},
	}}
}
